/** Alpha versions. `--runtime-config` enables them. */
import {
  mutatingAdmissionPolicyBindingKind,
  mutatingAdmissionPolicyKind,
} from "./admissionregistration/mutating-admission-policy/kinds.ts";
import type { Kind } from "./kind.ts";

export const alphaKinds: readonly Kind[] = [mutatingAdmissionPolicyBindingKind, mutatingAdmissionPolicyKind];
