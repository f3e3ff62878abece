import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type DaemonSet, daemonSet } from "./daemon-set.ts";

export const daemonSetKind: Kind<DaemonSet> = {
  group: "apps",
  version: "v1",
  kind: "DaemonSet",
  listKind: "DaemonSetList",
  plural: "daemonsets",
  singular: "daemonset",
  shortNames: ["ds"],
  categories: ["all"],
  namespaced: true,
  verbs: allVerbs,
  subresources: [statusSubresource("DaemonSet")],
  storageName: "daemonsets",
  schema: daemonSet,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
