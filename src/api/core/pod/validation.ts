/** Rules for new pods, and what of them holds on every write. Those for changes stand in `pod-update-validation.ts`. */
import { type FieldError, forbiddenField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateImageSpaces } from "../container/validation.ts";
import {
  validateAppArmorAgrees,
  validatePodAnnotations,
  validateSeccompAgrees,
} from "../pod-spec/annotation-validation.ts";
import { type PodSpecRules, validatePodSpec } from "../pod-spec/validation.ts";
import type { Pod, PodSpec } from "./schema.ts";

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
    ...validateSeccompAgrees(metadata, spec, "spec"),
    ...validateAppArmorAgrees(metadata, spec, "spec"),
  ];
}

/** A pod as such, new or changed. */
export function validatePod({ metadata = {}, spec = NO_SPEC }: Pod, rules: PodSpecRules = {}): readonly FieldError[] {
  return [
    ...validatePodAnnotations(metadata, spec, "metadata.annotations"),
    ...validatePodSpec(spec, "spec", { ...rules, isPod: true, name: metadata.name ?? "" }),
    ...validateTokens(spec),
    ...spec.containers.flatMap((container, i) => validateImageSpaces(container, index("spec.containers", i))),
    ...(spec.initContainers ?? []).flatMap((container, i) =>
      validateImageSpaces(container, index("spec.initContainers", i)),
    ),
  ];
}

/** Tokens are a service account's. */
function validateTokens(spec: PodSpec): readonly FieldError[] {
  if (spec.serviceAccountName) return [];
  return (spec.volumes ?? []).flatMap(({ projected }, i) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }, place) =>
      serviceAccountToken === undefined
        ? []
        : [
            forbiddenField(
              `${index("spec.volumes", i)}.projected.${index("sources", place)}.serviceAccountToken`,
              "must not be specified when serviceAccountName is not set",
            ),
          ],
    ),
  );
}
