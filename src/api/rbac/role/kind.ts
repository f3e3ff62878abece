import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { validatePolicyRules } from "../policy-rule-validation.ts";
import { type Role, role } from "./schema.ts";

export const roleKind: Kind<Role> = {
  group: "rbac.authorization.svc.io",
  version: "v1",
  kind: "Role",
  listKind: "RoleList",
  plural: "roles",
  singular: "role",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "roles",
  schema: role,
  columns: [nameColumn, createdAtColumn],
  selectableFields: {},
  updateChecks: ["metadata", "spec", "metadata", "spec", "metadataUpdate"],
  strategy: { validate: ({ rules = [] }) => validatePolicyRules(rules, true), allowCreateOnUpdate: true },
  nameFormat: pathSegment,
};
