import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type ReplicaSet, replicaSet } from "./replica-set.ts";

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
  subresources: [statusSubresource("ReplicaSet")],
  storageName: "replicasets",
  schema: replicaSet,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
