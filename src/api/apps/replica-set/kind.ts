import { scaleSubresource } from "../../autoscaling/scale/kind.ts";
import { ageColumn, integerColumn, nameColumn, wideColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { statusSubresource } from "../../strategy.ts";
import { containerColumns } from "../workload/columns.ts";
import { validateReplicaStatus } from "../workload/status-validation.ts";
import { type ReplicaSet, replicaSet } from "./schema.ts";
import { replicaSetStrategy } from "./strategy.ts";

export const replicaSetKind: Kind<ReplicaSet> = {
  group: "apps",
  version: "v1",
  kind: "ReplicaSet",
  listKind: "ReplicaSetList",
  plural: "replicasets",
  singular: "replicaset",
  shortNames: ["rs"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [
    scaleSubresource(({ spec }) => spec?.selector),
    statusSubresource("ReplicaSet", {
      validateUpdate: (next) => validateReplicaStatus(next.status),
    }),
  ],
  storageName: "replicasets",
  schema: replicaSet,
  columns: [
    nameColumn,
    integerColumn("Desired", ({ spec }) => spec?.replicas ?? 0),
    integerColumn("Current", ({ status }) => status?.replicas ?? 0),
    integerColumn("Ready", ({ status }) => status?.readyReplicas ?? 0),
    ageColumn,
    ...containerColumns<ReplicaSet>((object) => object.spec?.template),
    wideColumn("Selector", (object) => formatLabelSelector(object.spec?.selector)),
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadataUpdate", "spec"],
  strategy: replicaSetStrategy,
};
