/** Every plugin that Kubernetes has, in the order in which they are asked. */
import { certificateApproval, certificateSigning } from "./certificates.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds.ts";
import type { PluginRow } from "./factory.ts";
import { namespaceLifecycle } from "./namespace-lifecycle.ts";
import { podSecurity } from "./pod-security/pod-security.ts";
import { priority } from "./priority.ts";
import { runtimeClass } from "./runtime-class.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

export const plugins: readonly PluginRow[] = [
  { name: "AlwaysAdmit", byDefault: false },
  { name: "NamespaceAutoProvision", byDefault: false },
  { name: "NamespaceLifecycle", byDefault: true, make: namespaceLifecycle },
  { name: "NamespaceExists", byDefault: false },
  { name: "LimitPodHardAntiAffinityTopology", byDefault: false },
  { name: "LimitRanger", byDefault: true },
  { name: "ServiceAccount", byDefault: true },
  { name: "NodeRestriction", byDefault: false },
  { name: "TaintNodesByCondition", byDefault: true, make: taintNodesByCondition },
  { name: "AlwaysPullImages", byDefault: false },
  { name: "ImagePolicyWebhook", byDefault: false },
  { name: "PodSecurity", byDefault: true, make: podSecurity },
  { name: "PodNodeSelector", byDefault: false },
  { name: "Priority", byDefault: true, make: priority },
  { name: "DefaultTolerationSeconds", byDefault: true, make: defaultTolerationSeconds },
  { name: "PodTolerationRestriction", byDefault: false },
  { name: "EventRateLimit", byDefault: false },
  { name: "ExtendedResourceToleration", byDefault: false },
  { name: "DefaultStorageClass", byDefault: true },
  { name: "StorageObjectInUseProtection", byDefault: true },
  { name: "OwnerReferencesPermissionEnforcement", byDefault: false },
  { name: "PersistentVolumeClaimResize", byDefault: true },
  { name: "RuntimeClass", byDefault: true, make: runtimeClass },
  { name: "CertificateApproval", byDefault: true, make: certificateApproval },
  { name: "CertificateSigning", byDefault: true, make: certificateSigning },
  { name: "ClusterTrustBundleAttest", byDefault: true, gate: "ClusterTrustBundle" },
  { name: "CertificateSubjectRestriction", byDefault: true },
  { name: "DefaultIngressClass", byDefault: true },
  { name: "PodTopologyLabels", byDefault: true, gate: "PodTopologyLabelsAdmission" },
  { name: "DenyServiceExternalIPs", byDefault: false },
  { name: "MutatingAdmissionPolicy", byDefault: true, gate: "MutatingAdmissionPolicy" },
  { name: "MutatingAdmissionWebhook", byDefault: true },
  { name: "ValidatingAdmissionPolicy", byDefault: true },
  { name: "ValidatingAdmissionWebhook", byDefault: true },
  { name: "ResourceQuota", byDefault: true },
  { name: "AlwaysDeny", byDefault: false },
];
