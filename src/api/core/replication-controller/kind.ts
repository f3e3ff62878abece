import { containerColumns } from "../../apps/workload/columns.ts";
import { validateReplicaStatus } from "../../apps/workload/status-validation.ts";
import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabels } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { type ReplicationController, replicationController } from "./schema.ts";
import { replicationControllerStrategy } from "./strategy.ts";

export const replicationControllerKind: Kind<ReplicationController> = {
  group: "",
  version: "v1",
  kind: "ReplicationController",
  listKind: "ReplicationControllerList",
  plural: "replicationcontrollers",
  singular: "replicationcontroller",
  shortNames: ["rc"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => ({ matchLabels: spec?.selector })),
    statusSubresource("ReplicationController", { validateUpdate: (next) => validateReplicaStatus(next.status) }),
  ],
  storageName: "controllers",
  schema: replicationController,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ spec }) => spec?.replicas ?? 0),
    integerColumn("Current", ({ status }) => status?.replicas ?? 0),
    integerColumn("Ready", ({ status }) => status?.readyReplicas ?? 0),
    ageColumn,
    ...containerColumns<ReplicationController>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabels(object.spec?.selector)),
  ],
  selectableFields: { "status.replicas": (object) => String(object.status?.replicas ?? 0) },
  updateChecks: ["metadata", "spec", "metadataUpdate", "spec"],
  strategy: replicationControllerStrategy,
};
