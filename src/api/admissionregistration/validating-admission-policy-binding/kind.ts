import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { formatParamRef } from "../params.ts";
import {
  type ValidatingAdmissionPolicyBinding,
  validatingAdmissionPolicyBinding,
} from "../validating-admission-policy/schema.ts";
import { validatingAdmissionPolicyBindingStrategy } from "./strategy.ts";

export const validatingAdmissionPolicyBindingKind: Kind<ValidatingAdmissionPolicyBinding> = {
  group: "admissionregistration.svc.io",
  version: "v1",
  kind: "ValidatingAdmissionPolicyBinding",
  listKind: "ValidatingAdmissionPolicyBindingList",
  plural: "validatingadmissionpolicybindings",
  singular: "validatingadmissionpolicybinding",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "validatingadmissionpolicybindings",
  schema: validatingAdmissionPolicyBinding,
  columns: [
    nameColumn,
    column("PolicyName", (object) => object.spec?.policyName ?? ""),
    column("ParamRef", ({ spec }) => formatParamRef(spec?.paramRef)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: validatingAdmissionPolicyBindingStrategy,
};
