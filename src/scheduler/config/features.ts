import type { FeatureLookup } from "../../flags/gates.ts";

/** Features that gates switch off. */
export interface SchedulerFeatures {
  /** Victims are deleted in the background. */
  readonly asyncPreemption: boolean;
  /** Pods do not wait for the end of their back-off while no other pod is active. */
  readonly popFromBackoff: boolean;
  /** Plugins examine events; otherwise each registered event retries the pods that the plugin rejected. */
  readonly queueingHints: boolean;
}

export const defaultFeatures: SchedulerFeatures = {
  asyncPreemption: true,
  popFromBackoff: true,
  queueingHints: true,
};

export function schedulerFeatures(gates: FeatureLookup): SchedulerFeatures {
  return {
    asyncPreemption: gates.has("SchedulerAsyncPreemption"),
    popFromBackoff: gates.has("SchedulerPopFromBackoffQ"),
    queueingHints: gates.has("SchedulerQueueingHints"),
  };
}
