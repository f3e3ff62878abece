/** The feature gates that `svc scheduler` reads. */
import type { GateTable } from "../gates.ts";

export const schedulerGates: GateTable = {
  AllAlpha: { stage: "ALPHA", default: false },
  AllBeta: { stage: "BETA", default: false },
  SchedulerAsyncPreemption: { stage: "BETA", default: true, effective: true },
  SchedulerPopFromBackoffQ: { stage: "BETA", default: true, effective: true },
  SchedulerQueueingHints: { stage: "BETA", default: true, effective: true },
};
