import { deepEqual } from "../../../schema/value/equal.ts";
import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import {
  dropStatus,
  keepStatus,
  replaceStatusOnly,
  setFirstGeneration,
  statusSubresource,
  updateGeneration,
} from "../../strategy.ts";
import type { MatchResources } from "../rules.ts";
import { setRuleDefaults } from "../rules-validation.ts";
import { type ValidatingAdmissionPolicy, validatingAdmissionPolicy } from "./schema.ts";
import { validatePolicy } from "./validation.ts";

export function setMatchDefaults(match: MatchResources): MatchResources {
  return {
    ...match,
    namespaceSelector: match.namespaceSelector ?? {},
    objectSelector: match.objectSelector ?? {},
    matchPolicy: match.matchPolicy ?? "Equivalent",
    ...(match.resourceRules === undefined ? {} : { resourceRules: match.resourceRules.map(setRuleDefaults) }),
    ...(match.excludeResourceRules === undefined
      ? {}
      : { excludeResourceRules: match.excludeResourceRules.map(setRuleDefaults) }),
  };
}

const validatingAdmissionPolicyStrategy: Strategy<ValidatingAdmissionPolicy> = {
  setDefaults: (object) => {
    const { matchConstraints, failurePolicy = "Fail" } = object.spec ?? {};
    const match = matchConstraints === undefined ? {} : { matchConstraints: setMatchDefaults(matchConstraints) };
    return { ...object, spec: { ...object.spec, failurePolicy, ...match } };
  },
  prepareForCreate: (object) => setFirstGeneration(dropStatus(object)),
  prepareForUpdate: (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !deepEqual(next.spec, previous.spec)),
  validate: validatePolicy,
  allowUnconditionalUpdate: false,
};

export const validatingAdmissionPolicyKind: Kind<ValidatingAdmissionPolicy> = {
  group: "admissionregistration.svc.io",
  version: "v1",
  kind: "ValidatingAdmissionPolicy",
  listKind: "ValidatingAdmissionPolicyList",
  plural: "validatingadmissionpolicies",
  singular: "validatingadmissionpolicy",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [
    statusSubresource("ValidatingAdmissionPolicy", {
      prepareForUpdate: replaceStatusOnly,
      validateUpdate: (next) => validateConditions(next.status?.conditions, "status.conditions"),
    }),
  ],
  storageName: "validatingadmissionpolicies",
  schema: validatingAdmissionPolicy,
  columns: [
    nameColumn,
    integerColumn("Validations", (object) => (object.spec?.validations ?? []).length, "How many rules it has."),
    column("ParamKind", ({ spec }) => {
      const { apiVersion = "", kind = "" } = spec?.paramKind ?? {};
      return spec?.paramKind === undefined ? "<unset>" : `${apiVersion}/${kind}`;
    }),
    ageColumn,
  ],
  selectableFields: {},
  strategy: validatingAdmissionPolicyStrategy,
};
