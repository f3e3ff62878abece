import { int32, listMap, named, object, optional, pointer, required, string, time } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

export const queuingConfiguration = object("flowcontrol/v1.QueuingConfiguration", {
  queues: optional(1, int32, { emitEmpty: true }),
  handSize: optional(2, int32, { emitEmpty: true }),
  queueLengthLimit: optional(3, int32, { emitEmpty: true }),
});
export type QueuingConfiguration = Infer<typeof queuingConfiguration>;

export const limitResponse = object(
  "flowcontrol/v1.LimitResponse",
  {
    type: required(1, named("v1.LimitResponseType", string)),
    queuing: pointer(2, queuingConfiguration),
  },
  { unions: [{ discriminator: "type", members: ["queuing"] }] },
);
export type LimitResponse = Infer<typeof limitResponse>;

export const limitedPriorityLevelConfiguration = object("flowcontrol/v1.LimitedPriorityLevelConfiguration", {
  nominalConcurrencyShares: pointer(1, int32, { emitEmpty: true }),
  limitResponse: optional(2, limitResponse),
  lendablePercent: pointer(3, int32),
  borrowingLimitPercent: pointer(4, int32),
});
export type LimitedPriorityLevelConfiguration = Infer<typeof limitedPriorityLevelConfiguration>;

export const exemptPriorityLevelConfiguration = object("flowcontrol/v1.ExemptPriorityLevelConfiguration", {
  nominalConcurrencyShares: pointer(1, int32),
  lendablePercent: pointer(2, int32),
});
export type ExemptPriorityLevelConfiguration = Infer<typeof exemptPriorityLevelConfiguration>;

export const priorityLevelConfigurationSpec = object(
  "flowcontrol/v1.PriorityLevelConfigurationSpec",
  {
    type: required(1, named("v1.PriorityLevelEnablement", string)),
    limited: pointer(2, limitedPriorityLevelConfiguration),
    exempt: pointer(3, exemptPriorityLevelConfiguration),
  },
  { unions: [{ discriminator: "type", members: ["exempt", "limited"] }] },
);
export type PriorityLevelConfigurationSpec = Infer<typeof priorityLevelConfigurationSpec>;

export const priorityLevelConfigurationCondition = object("flowcontrol/v1.PriorityLevelConfigurationCondition", {
  type: optional(1, named("v1.PriorityLevelConfigurationConditionType", string)),
  status: optional(2, named("v1.ConditionStatus", string)),
  lastTransitionTime: optional(3, time),
  reason: optional(4, string),
  message: optional(5, string),
});
export type PriorityLevelConfigurationCondition = Infer<typeof priorityLevelConfigurationCondition>;

export const priorityLevelConfigurationStatus = object("flowcontrol/v1.PriorityLevelConfigurationStatus", {
  conditions: optional(1, listMap(priorityLevelConfigurationCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
});
export type PriorityLevelConfigurationStatus = Infer<typeof priorityLevelConfigurationStatus>;

export const priorityLevelConfiguration = object("flowcontrol/v1.PriorityLevelConfiguration", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, priorityLevelConfigurationSpec),
  status: optional(3, priorityLevelConfigurationStatus),
});
export type PriorityLevelConfiguration = Infer<typeof priorityLevelConfiguration>;
