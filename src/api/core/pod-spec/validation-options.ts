/** Exemptions for updates: values that are invalid today but that the stored pod has already. */
import type { Pod } from "../pod/schema.ts";
import { hasInvalidDeletionCost } from "./annotation-validation.ts";
import { validateScheduling } from "./scheduling-validation.ts";
import { validatePodSecurityContext } from "./security-validation.ts";
import type { PodSpecValidationOptions } from "./validation.ts";

export function validationOptionsFrom({ metadata, spec }: Pod): PodSpecValidationOptions {
  const allowInvalidDeletionCost = hasInvalidDeletionCost(metadata);
  if (spec === undefined) return { allowInvalidDeletionCost };
  const schedulingErrors = validateScheduling(spec, "").map(({ field }) => field);
  const sysctls = validatePodSecurityContext(spec, "", {}).some(({ field }) => field.startsWith("sysctls"));
  return {
    allowInvalidNodeAffinityValues: schedulingErrors.some((field) =>
      /^affinity\.nodeAffinity\.required.*\.values\[/.test(field),
    ),
    allowInvalidTopologySpreadSelectors: schedulingErrors.some((field) =>
      /^topologySpreadConstraints\[\d+\]\.labelSelector/.test(field),
    ),
    allowHostNamespaceSysctls: sysctls,
    allowInvalidDeletionCost,
  };
}
