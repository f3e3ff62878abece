/** Alpha kinds: `--runtime-config=admissionregistration.k8s.io/v1alpha1=true` enables them. */
import { ageColumn, column, integerColumn, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { formatParamKind, formatParamRef } from "../params.ts";
import {
  type MutatingAdmissionPolicy,
  type MutatingAdmissionPolicyBinding,
  mutatingAdmissionPolicy,
  mutatingAdmissionPolicyBinding,
} from "./schema.ts";
import { mutatingAdmissionPolicyBindingStrategy, mutatingAdmissionPolicyStrategy } from "./strategy.ts";

export const mutatingAdmissionPolicyKind: Kind<MutatingAdmissionPolicy> = {
  group: "admissionregistration.svc.io",
  version: "v1alpha1",
  since: "1.32",
  kind: "MutatingAdmissionPolicy",
  listKind: "MutatingAdmissionPolicyList",
  plural: "mutatingadmissionpolicies",
  singular: "mutatingadmissionpolicy",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "mutatingadmissionpolicies",
  schema: mutatingAdmissionPolicy,
  columns: [
    nameColumn,
    integerColumn("Mutations", (object) => (object.spec?.mutations ?? []).length),
    column("ParamKind", ({ spec }) => formatParamKind(spec?.paramKind)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: mutatingAdmissionPolicyStrategy,
};

export const mutatingAdmissionPolicyBindingKind: Kind<MutatingAdmissionPolicyBinding> = {
  group: "admissionregistration.svc.io",
  version: "v1alpha1",
  since: "1.32",
  kind: "MutatingAdmissionPolicyBinding",
  listKind: "MutatingAdmissionPolicyBindingList",
  plural: "mutatingadmissionpolicybindings",
  singular: "mutatingadmissionpolicybinding",
  shortNames: [],
  categories: ["api-extensions"],
  namespaced: false,
  allowsAnyFinalizer: true,
  verbs: allVerbs,
  subresources: [],
  storageName: "mutatingadmissionpolicybindings",
  schema: mutatingAdmissionPolicyBinding,
  columns: [
    nameColumn,
    column("PolicyName", (object) => object.spec?.policyName ?? ""),
    column("ParamRef", ({ spec }) => formatParamRef(spec?.paramRef)),
    ageColumn,
  ],
  selectableFields: {},
  updateChecks: ["metadata", "spec"],
  strategy: mutatingAdmissionPolicyBindingStrategy,
};
