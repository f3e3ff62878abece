/** Rules for new pods, and those that hold on updates as well. `update-validation.ts` has the rules for changes. */
import { type FieldError, forbiddenField, validateEach } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateImageWhitespace } from "../container/validation.ts";
import {
  validateAppArmorAnnotationsMatchFields,
  validatePodAnnotations,
  validateSeccompAnnotationsMatchFields,
} from "../pod-spec/annotation-validation.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { type PodSpecValidationOptions, validatePodSpec } from "../pod-spec/validation.ts";
import type { Pod } from "./schema.ts";

const NO_SPEC: PodSpec = { containers: [] };

export function validateNewPod(pod: Pod): readonly FieldError[] {
  const { metadata = {}, spec = NO_SPEC } = pod;
  const gated = spec.nodeName && (spec.schedulingGates ?? []).length > 0;
  return [
    ...validatePod(pod),
    ...((spec.ephemeralContainers ?? []).length > 0
      ? [forbiddenField("spec.ephemeralContainers", "cannot be set on create")]
      : []),
    ...(gated ? [forbiddenField("spec.nodeName", "cannot be set until all schedulingGates have been cleared")] : []),
    ...validateSeccompAnnotationsMatchFields(metadata, spec, "spec"),
    ...validateAppArmorAnnotationsMatchFields(metadata, spec, "spec"),
  ];
}

/** The rules for both new and updated pods. */
export function validatePod(
  { metadata = {}, spec = NO_SPEC }: Pod,
  options: PodSpecValidationOptions = {},
): readonly FieldError[] {
  return [
    ...validatePodAnnotations(metadata, spec, "metadata.annotations", options),
    ...validatePodSpec(spec, "spec", { ...options, isPod: true, name: metadata.name ?? "" }),
    ...validateTokenProjections(spec),
    ...validateEach(spec.containers, (container, i) => validateImageWhitespace(container, index("spec.containers", i))),
    ...validateEach(spec.initContainers ?? [], (container, i) =>
      validateImageWhitespace(container, index("spec.initContainers", i)),
    ),
  ];
}

/** A projected token requires a service account. */
function validateTokenProjections(spec: PodSpec): readonly FieldError[] {
  if (spec.serviceAccountName) return [];
  return validateEach(spec.volumes ?? [], ({ projected }, i) =>
    validateEach(projected?.sources ?? [], ({ serviceAccountToken }, sourceIndex) =>
      serviceAccountToken === undefined
        ? []
        : [
            forbiddenField(
              `${index("spec.volumes", i)}.projected.${index("sources", sourceIndex)}.serviceAccountToken`,
              "must not be specified when serviceAccountName is not set",
            ),
          ],
    ),
  );
}
