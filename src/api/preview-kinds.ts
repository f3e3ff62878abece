/** Alpha and beta kinds without a stable version. `--runtime-config` enables them. */
import {
  mutatingAdmissionPolicyBindingKind,
  mutatingAdmissionPolicyKind,
} from "./admissionregistration/mutating-admission-policy/kinds.ts";
import { storageVersionKind } from "./apiserverinternal/storage-version/kind.ts";
import { clusterTrustBundleKind } from "./certificates/cluster-trust-bundle/kind.ts";
import { leaseCandidateKind } from "./coordination/lease-candidate/kind.ts";
import type { Kind } from "./kind.ts";
import { otherVersionOf } from "./other-version.ts";
import { deviceClassKind } from "./resource/device-class/kind.ts";
import { deviceTaintRuleKind } from "./resource/device-taint-rule/kind.ts";
import {
  alphaResourceSliceKind,
  betaDeviceClassKind,
  betaResourceSliceKind,
  flatResourceClaimKinds,
  flatResourceClaimTemplateKinds,
} from "./resource/flat-versions/kinds.ts";
import { resourceClaimKind } from "./resource/resource-claim/kind.ts";
import { resourceClaimTemplateKind } from "./resource/resource-claim-template/kind.ts";
import { resourceSliceKind } from "./resource/resource-slice/kind.ts";
import { volumeAttributesClassKind } from "./storage/volume-attributes-class/kind.ts";
import { storageVersionMigrationKind } from "./storagemigration/storage-version-migration/kind.ts";

export const previewKinds: readonly Kind[] = [
  mutatingAdmissionPolicyBindingKind,
  mutatingAdmissionPolicyKind,
  clusterTrustBundleKind,
  otherVersionOf(clusterTrustBundleKind, "v1alpha1", { since: "1.26" }),
  leaseCandidateKind,
  otherVersionOf(leaseCandidateKind, "v1alpha2", { since: "1.32" }),
  storageVersionKind,
  volumeAttributesClassKind,
  otherVersionOf(volumeAttributesClassKind, "v1alpha1", { since: "1.29" }),
  storageVersionMigrationKind,
  deviceClassKind,
  resourceClaimKind,
  resourceClaimTemplateKind,
  resourceSliceKind,
  betaDeviceClassKind,
  ...flatResourceClaimKinds,
  ...flatResourceClaimTemplateKinds,
  betaResourceSliceKind,
  otherVersionOf(deviceClassKind, "v1alpha3", { since: "1.31" }),
  alphaResourceSliceKind,
  deviceTaintRuleKind,
];
