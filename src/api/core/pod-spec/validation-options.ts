/** What a change of a pod need not put right, because the pod was so before. */
import type { Pod } from "../pod/schema.ts";
import { validateScheduling } from "./scheduling-validation.ts";
import { validatePodSecurityContext } from "./security-validation.ts";
import type { PodSpecValidationOptions } from "./validation.ts";

export function validationOptionsFrom({ spec }: Pod): PodSpecValidationOptions {
  if (spec === undefined) return {};
  const placing = validateScheduling(spec, "").map(({ field }) => field);
  const sysctls = validatePodSecurityContext(spec, "", {}).some(({ field }) => field.startsWith("sysctls"));
  return {
    allowInvalidNodeAffinityValues: placing.some((field) =>
      /^affinity\.nodeAffinity\.required.*\.values\[/.test(field),
    ),
    allowInvalidTopologySpreadSelectors: placing.some((field) =>
      /^topologySpreadConstraints\[\d+\]\.labelSelector/.test(field),
    ),
    allowHostNamespaceSysctls: sysctls,
  };
}
