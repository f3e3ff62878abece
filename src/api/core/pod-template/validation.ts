/**
 * Rules, defaults and warnings for the pods that workloads describe; one set of rules with pods themselves
 * (`validatePodSpec` in pod-spec-validation.ts). `path` is where the template stands: `spec.template`, `template`.
 *
 *     validatePodTemplateSpec(template, path)   errors of metadata and spec
 *     setPodTemplateDefaults(template)          the template with what its author left out
 *     podTemplateWarnings(template, path)       what is deprecated or pointless in it
 */
import { type FieldError, forbiddenField } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validateAnnotations, validateLabels } from "../../meta/validation/object-meta.ts";
import { validatePodAnnotations, validateSeccompAnnotationsMatchFields } from "../pod-spec/annotation-validation.ts";
import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import { dropDisabledFields } from "../pod-spec/disabled-fields.ts";
import { type PodSpecValidationOptions, validatePodSpec } from "../pod-spec/validation.ts";
import { podSpecWarnings } from "../pod-spec/warnings.ts";
import type { PodTemplateSpec } from "./schema.ts";

/** `rules` spare what was stored before: see `rulesFor` in pod-stored-rules.ts. */
export function validatePodTemplateSpec(
  template: PodTemplateSpec,
  path: string,
  rules: PodSpecValidationOptions = {},
): readonly FieldError[] {
  const { metadata = {}, spec = { containers: [] } } = template;
  const [annotations, at] = [child(path, "annotations"), child(path, "spec")];
  return [
    ...validateLabels(metadata.labels, child(path, "labels")),
    ...validateAnnotations(metadata.annotations, annotations),
    ...validatePodAnnotations(metadata, spec, annotations),
    ...validatePodSpec(spec, at, rules),
    ...validateSeccompAnnotationsMatchFields(metadata, spec, at),
    ...((spec.ephemeralContainers ?? []).length === 0
      ? []
      : [forbiddenField(child(at, "ephemeralContainers"), "ephemeral containers not allowed in pod template")]),
  ];
}

export function setPodTemplateDefaults(template: PodTemplateSpec): PodTemplateSpec {
  const spec = dropDisabledFields(template.spec ?? { containers: [] });
  return { ...template, spec: setPodSpecDefaults(spec) };
}

export function podTemplateWarnings(template: PodTemplateSpec, path: string): readonly string[] {
  return template.spec === undefined ? [] : podSpecWarnings(template.spec, child(path, "spec"), template.metadata);
}
