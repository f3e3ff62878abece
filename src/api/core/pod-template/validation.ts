/** Rules for pod templates. The rules for the spec are those of pods (pod-spec/validation.ts). */
import { type FieldError, forbiddenField } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validateAnnotations, validateLabels } from "../../meta/validation/object-meta.ts";
import { validatePodAnnotations, validateSeccompAnnotationsMatchFields } from "../pod-spec/annotation-validation.ts";
import { type PodSpecValidationOptions, validatePodSpec } from "../pod-spec/validation.ts";
import type { PodTemplateSpec } from "./schema.ts";

/**
 * `path` is the path of the template: `spec.template`, `template`. `options` exempt what the stored object has already:
 * see `validationOptionsFrom` in pod-spec/validation-options.ts.
 */
export function validatePodTemplateSpec(
  template: PodTemplateSpec,
  path: string,
  options: PodSpecValidationOptions = {},
): readonly FieldError[] {
  const { metadata = {}, spec = { containers: [] } } = template;
  const [annotations, at] = [child(path, "annotations"), child(path, "spec")];
  return [
    ...validateLabels(metadata.labels, child(path, "labels")),
    ...validateAnnotations(metadata.annotations, annotations),
    ...validatePodAnnotations(metadata, spec, annotations, options),
    ...validatePodSpec(spec, at, options),
    ...validateSeccompAnnotationsMatchFields(metadata, spec, at),
    ...((spec.ephemeralContainers ?? []).length === 0
      ? []
      : [forbiddenField(child(at, "ephemeralContainers"), "ephemeral containers not allowed in pod template")]),
  ];
}
