import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { type ClusterRole, clusterRole } from "./schema.ts";
import { validateClusterRole } from "./validation.ts";

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
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec", "metadataUpdate"],
  strategy: { validate: validateClusterRole, allowCreateOnUpdate: true },
  nameFormat: pathSegment,
};
