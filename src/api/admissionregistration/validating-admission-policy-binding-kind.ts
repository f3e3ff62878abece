import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import {
  type ValidatingAdmissionPolicyBinding,
  validatingAdmissionPolicyBinding,
} from "./validating-admission-policy.ts";

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
  verbs: allVerbs,
  subresources: [],
  storageName: "validatingadmissionpolicybindings",
  schema: validatingAdmissionPolicyBinding,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
};
