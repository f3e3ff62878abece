import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { bindingColumns, createBindingStrategy } from "../binding-strategy.ts";
import { type RoleBinding, roleBinding } from "./schema.ts";

export const roleBindingKind: Kind<RoleBinding> = {
  group: "rbac.authorization.svc.io",
  version: "v1",
  kind: "RoleBinding",
  listKind: "RoleBindingList",
  plural: "rolebindings",
  singular: "rolebinding",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "rolebindings",
  schema: roleBinding,
  columns: bindingColumns,
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec", "metadataUpdate"],
  strategy: createBindingStrategy(["Role", "ClusterRole"], true),
  nameFormat: pathSegment,
};
