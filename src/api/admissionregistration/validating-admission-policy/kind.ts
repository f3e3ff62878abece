import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { replaceStatusOnly, statusSubresource } from "../../strategy.ts";
import { formatParamKind } from "../params.ts";
import { type ValidatingAdmissionPolicy, validatingAdmissionPolicy } from "./schema.ts";
import { validatingAdmissionPolicyStrategy } from "./strategy.ts";
import { validatePolicyStatus } from "./validation.ts";

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
      validateUpdate: validatePolicyStatus,
    }),
  ],
  storageName: "validatingadmissionpolicies",
  schema: validatingAdmissionPolicy,
  columns: [
    nameColumn,
    integerColumn("Validations", (object) => (object.spec?.validations ?? []).length),
    column("ParamKind", ({ spec }) => formatParamKind(spec?.paramKind)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: validatingAdmissionPolicyStrategy,
};
