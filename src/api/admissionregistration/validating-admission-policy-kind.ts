import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type ValidatingAdmissionPolicy, validatingAdmissionPolicy } from "./validating-admission-policy.ts";

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
  verbs: allVerbs,
  subresources: [statusSubresource("ValidatingAdmissionPolicy")],
  storageName: "validatingadmissionpolicies",
  schema: validatingAdmissionPolicy,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus },
};
