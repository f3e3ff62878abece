import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { createdAtColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { validateLabelSelector } from "../../meta/validation/label-selector.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { validatePolicyRules } from "../policy-rule-validation.ts";
import { type ClusterRole, clusterRole } from "./schema.ts";

const SELECTORS = "aggregationRule.clusterRoleSelectors";

function validateClusterRole({ rules = [], aggregationRule }: ClusterRole, previous?: ClusterRole): readonly FieldError[] {
  const errors = [...validatePolicyRules(rules, false)];
  if (aggregationRule === undefined) return errors;
  const { clusterRoleSelectors: selectors = [] } = aggregationRule;
  if (selectors.length === 0) {
    const detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
    errors.push(requiredField(SELECTORS, detail));
  }
  // Values that are no labels stay where they were stored before they were looked at.
  const before = previous?.aggregationRule?.clusterRoleSelectors ?? [];
  const allowBadValues = before.some((selector) => validateLabelSelector(selector, "").length > 0);
  for (const [i, selector] of selectors.entries()) {
    const at = index(SELECTORS, i);
    errors.push(...validateLabelSelector(selector, at, { allowInvalidValues: allowBadValues }));
    if (validateLabelSelector(selector, at).length > 0) {
      errors.push(invalidField(at, undefined, "invalid label selector."));
    }
  }
  return errors;
}

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
  strategy: { validate: validateClusterRole, allowCreateOnUpdate: true },
  nameFormat: pathSegment,
};
