/** Rules for selectors and templates that all workload kinds share. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  invalidMap,
  notSupported,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validationOptionsFrom } from "../../core/pod-spec/validation-options.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { validatePodTemplateSpec } from "../../core/pod-template/validation.ts";
import { type LabelSelector, labelSelector } from "../../meta/label-selector.ts";
import { matchesLabels, requirementsOf } from "../../meta/selectors/selector.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";

type Labels = Readonly<Record<string, string>> | undefined;

/** Requires a selector that is not empty. */
export function validateSelector(
  selector: LabelSelector | undefined,
  path: string,
  controller: "deployment" | "statefulset",
): readonly FieldError[] {
  if (selector === undefined) return [requiredField(path)];
  const empty = isEmptySelector(selector);
  return [
    ...validateLabelSelector(selector, path),
    ...(empty
      ? [invalidField(path, goStruct(labelSelector, selector), `empty selector is invalid for ${controller}`)]
      : []),
  ];
}

export function isEmptySelector({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels ?? {}).length + (matchExpressions ?? []).length === 0;
}

/** Whether the selector is valid, so that it can be matched. */
export function isValidSelector(selector: LabelSelector | undefined): boolean {
  return validateLabelSelector(selector, "").length === 0;
}

/** Accepts invalid values that the stored selector has already. */
export function validateStoredSelector(
  selector: LabelSelector | undefined,
  previous: LabelSelector | undefined,
  path: string,
): readonly FieldError[] {
  return validateLabelSelector(selector, path, { allowInvalidValues: !isValidSelector(previous) });
}

/** An absent selector matches nothing, an empty one everything. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector !== undefined && matchesLabels(requirementsOf(selector), labels);
}

/** The selector must match the template's labels. `path` is the path of the template. */
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

/** Rules for the template, with exemptions for what the stored template has already. */
export function validateTemplate(
  template: PodTemplateSpec,
  previous: PodTemplateSpec | undefined,
  path: string,
): readonly FieldError[] {
  return validatePodTemplateSpec(template, path, previous === undefined ? {} : validationOptionsFrom(previous));
}

/** Long-running pods: restartPolicy Always, and no deadline. */
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
