import {
  documentedEnum,
  list,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";
import { resourceList } from "../resources/schema.ts";
import { persistentVolumeClaimSpec } from "../volume/schema.ts";

export const persistentVolumeClaimCondition = object("core/v1.PersistentVolumeClaimCondition", {
  type: required(1, named("v1.PersistentVolumeClaimConditionType", string)),
  status: required(2, named("v1.ConditionStatus", string)),
  lastProbeTime: optional(3, time),
  lastTransitionTime: optional(4, time),
  reason: optional(5, string),
  message: optional(6, string),
});
export type PersistentVolumeClaimCondition = Infer<typeof persistentVolumeClaimCondition>;

export const modifyVolumeStatus = object("core/v1.ModifyVolumeStatus", {
  targetVolumeAttributesClassName: optional(1, string),
  status: required(
    2,
    named("v1.PersistentVolumeClaimModifyVolumeStatus", documentedEnum("Pending", "InProgress", "Infeasible")),
  ),
});
export type ModifyVolumeStatus = Infer<typeof modifyVolumeStatus>;

export const persistentVolumeClaimStatus = object("core/v1.PersistentVolumeClaimStatus", {
  phase: optional(1, named("v1.PersistentVolumeClaimPhase", documentedEnum("Pending", "Bound", "Lost"))),
  accessModes: optional(
    2,
    list(
      named(
        "v1.PersistentVolumeAccessMode",
        documentedEnum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
      ),
    ),
  ),
  capacity: optional(3, resourceList),
  conditions: optional(4, listMap(persistentVolumeClaimCondition, "type"), {
    patchStrategy: "merge",
    patchMergeKey: "type",
  }),
  allocatedResources: optional(5, resourceList, { featureGate: "RecoverVolumeExpansionFailure" }),
  allocatedResourceStatuses: optional(
    7,
    map(
      named(
        "v1.ClaimResourceStatus",
        documentedEnum(
          "ControllerResizeInProgress",
          "ControllerResizeInfeasible",
          "NodeResizePending",
          "NodeResizeInProgress",
          "NodeResizeInfeasible",
        ),
      ),
    ),
    { granular: true, featureGate: "RecoverVolumeExpansionFailure" },
  ),
  currentVolumeAttributesClassName: pointer(8, string, { featureGate: "VolumeAttributesClass" }),
  modifyVolumeStatus: pointer(9, modifyVolumeStatus, { featureGate: "VolumeAttributesClass" }),
});
export type PersistentVolumeClaimStatus = Infer<typeof persistentVolumeClaimStatus>;

export const persistentVolumeClaim = object("core/v1.PersistentVolumeClaim", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, persistentVolumeClaimSpec),
  status: optional(3, persistentVolumeClaimStatus),
});
export type PersistentVolumeClaim = Infer<typeof persistentVolumeClaim>;
