/** Beta versions with the schema of version 1. `--runtime-config` enables them. */
import { validatingAdmissionPolicyKind } from "./admissionregistration/validating-admission-policy/kind.ts";
import { validatingAdmissionPolicyBindingKind } from "./admissionregistration/validating-admission-policy-binding/kind.ts";
import type { Kind } from "./kind.ts";
import { ipAddressKind } from "./networking/ip-address/kind.ts";
import { serviceCIDRKind } from "./networking/service-cidr/kind.ts";
import { otherVersionOf, type VersionLifecycle } from "./other-version.ts";

export const betaKinds: readonly Kind[] = [
  betaVersionOf(ipAddressKind, { since: "1.31" }),
  betaVersionOf(serviceCIDRKind, { since: "1.31" }),
  betaVersionOf(validatingAdmissionPolicyKind, {
    since: "1.28",
    deprecation: removalWarning("ValidatingAdmissionPolicy"),
  }),
  betaVersionOf(validatingAdmissionPolicyBindingKind, {
    since: "1.28",
    deprecation: removalWarning("ValidatingAdmissionPolicyBinding"),
  }),
];

function removalWarning(kind: string): string {
  return `admissionregistration.k8s.io/v1beta1 ${kind} is deprecated in v1.31+, unavailable in v1.34+`;
}

function betaVersionOf(kind: Kind, lifecycle: VersionLifecycle): Kind {
  return otherVersionOf(kind, "v1beta1", lifecycle);
}
