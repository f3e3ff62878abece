import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type StatefulSet, statefulSet } from "./stateful-set.ts";

export const statefulSetKind: Kind<StatefulSet> = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  listKind: "StatefulSetList",
  plural: "statefulsets",
  singular: "statefulset",
  shortNames: ["sts"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("StatefulSet")],
  storageName: "statefulsets",
  schema: statefulSet,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
