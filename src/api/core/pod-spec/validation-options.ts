/** What a change of a pod need not put right, because the pod was so before. */
import type { Pod } from "../pod/schema.ts";
import { validateScheduling } from "./scheduling-validation.ts";
import { validatePodSecurityContext } from "./security-validation.ts";
import type { PodSpecRules } from "./validation.ts";

export function rulesFor({ spec }: Pod): PodSpecRules {
  if (spec === undefined) return {};
  const placing = validateScheduling(spec, "").map(({ field }) => field);
  const sysctls = validatePodSecurityContext(spec, "", {}).some(({ field }) => field.startsWith("sysctls"));
  return {
    allowBadNodeValues: placing.some((field) => /^affinity\.nodeAffinity\.required.*\.values\[/.test(field)),
    allowBadSpreadSelectors: placing.some((field) => /^topologySpreadConstraints\[\d+\]\.labelSelector/.test(field)),
    allowHostSysctls: sysctls,
  };
}
