import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { pathSegment } from "../meta/names.ts";
import { type ClusterRole, clusterRole } from "./cluster-role.ts";

export const clusterRoleKind: Kind<ClusterRole> = {
  group: "rbac.authorization.svc.io",
  version: "v1",
  kind: "ClusterRole",
  listKind: "ClusterRoleList",
  plural: "clusterroles",
  singular: "clusterrole",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "clusterroles",
  schema: clusterRole,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
  nameForm: pathSegment,
};
