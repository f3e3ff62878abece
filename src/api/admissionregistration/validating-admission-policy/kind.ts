import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { type ValidatingAdmissionPolicy, validatingAdmissionPolicy } from "./schema.ts";
import { validatingAdmissionPolicyStrategy } from "./strategy.ts";

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
    integerColumn("Validations", (object) => (object.spec?.validations ?? []).length),
    column("ParamKind", ({ spec }) => {
      const { apiVersion = "", kind = "" } = spec?.paramKind ?? {};
      return spec?.paramKind === undefined ? "<unset>" : `${apiVersion}/${kind}`;
    }),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: validatingAdmissionPolicyStrategy,
};
