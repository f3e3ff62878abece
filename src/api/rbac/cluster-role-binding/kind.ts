import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { bindingColumns, createBindingStrategy } from "../binding-strategy.ts";
import { type ClusterRoleBinding, clusterRoleBinding } from "./schema.ts";

export const clusterRoleBindingKind: Kind<ClusterRoleBinding> = {
  group: "rbac.authorization.svc.io",
  version: "v1",
  kind: "ClusterRoleBinding",
  listKind: "ClusterRoleBindingList",
  plural: "clusterrolebindings",
  singular: "clusterrolebinding",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "clusterrolebindings",
  schema: clusterRoleBinding,
  columns: bindingColumns,
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec", "metadataUpdate"],
  strategy: createBindingStrategy(["ClusterRole"], false),
  nameFormat: pathSegment,
};
