/** What the kinds that keep pods running ask of their selector and of their template alike. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  invalidMap,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validationOptionsFrom } from "../../core/pod-spec/validation-options.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { validatePodTemplateSpec } from "../../core/pod-template/validation.ts";
import type { LabelSelector } from "../../meta/label-selector.ts";
import { matchesLabels, requirementsOf } from "../../meta/selectors/selector.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";

type Labels = Readonly<Record<string, string>> | undefined;

/** A selector must be there, and select by something. */
export function validateSelector(
  selector: LabelSelector | undefined,
  path: string,
  controller: "deployment" | "statefulset",
): readonly FieldError[] {
  if (selector === undefined) return [requiredField(path)];
  const empty = isEmptySelector(selector);
  return [
    ...validateLabelSelector(selector, path),
    ...(empty ? [invalidField(path, selector, `empty selector is invalid for ${controller}`)] : []),
  ];
}

export function isEmptySelector({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0;
}

/** Rules that a selector breaks leave nothing to match by. */
export function isValidSelector(selector: LabelSelector | undefined): boolean {
  return validateLabelSelector(selector, "").length === 0;
}

/** Bad values in a selector that were stored before the rule came are spared. */
export function validateStoredSelector(
  selector: LabelSelector | undefined,
  previous: LabelSelector | undefined,
  path: string,
): readonly FieldError[] {
  return validateLabelSelector(selector, path, { allowInvalidValues: !isValidSelector(previous) });
}

/** An absent selector selects nothing, an empty one everything. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector !== undefined && matchesLabels(requirementsOf(selector), labels);
}

/** A controller must find the pods it makes. `path` is that of the template. */
export function validateTemplateLabels(
  selector: LabelSelector | undefined,
  template: PodTemplateSpec,
  path: string,
): readonly FieldError[] {
  const labels = template.metadata?.labels;
  if (selectorMatches(selector, labels)) return [];
  const field = child(path, "metadata.labels");
  return [invalidMap(field, labels, "`selector` does not match template `labels`")];
}

/** Rules for the pods of a template; what was stored before some of them came is spared. */
export function validateTemplate(
  template: PodTemplateSpec,
  previous: PodTemplateSpec | undefined,
  path: string,
): readonly FieldError[] {
  return validatePodTemplateSpec(template, path, previous === undefined ? {} : validationOptionsFrom(previous));
}

/** Pods that are to run for ever: they are restarted, and no deadline ends them. */
export function validateAlwaysRestarts(template: PodTemplateSpec, path: string, kind: string): readonly FieldError[] {
  const { restartPolicy = "Always", activeDeadlineSeconds } = template.spec ?? {};
  const at = child(path, "spec");
  return [
    ...(restartPolicy === "Always" ? [] : [notSupported(child(at, "restartPolicy"), restartPolicy, ["Always"])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [forbiddenField(child(at, "activeDeadlineSeconds"), `activeDeadlineSeconds in ${kind} is not Supported`)]),
  ];
}
