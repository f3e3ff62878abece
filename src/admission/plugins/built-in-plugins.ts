/** Every plugin that Kubernetes has, in the order in which they are asked. */
import { alwaysAdmit, alwaysDeny } from "./always-deny/always-deny.ts";
import { alwaysPullImages } from "./always-pull-images/always-pull-images.ts";
import { certificateSubjectRestriction } from "./certificate-subject-restriction/certificate-subject-restriction.ts";
import { certificateApproval, certificateSigning } from "./certificate-approval/certificate-approval.ts";
import { clusterTrustBundleAttest } from "./cluster-trust-bundle-attest/cluster-trust-bundle-attest.ts";
import { defaultIngressClass, defaultStorageClass } from "./default-storage-class/default-storage-class.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds/default-toleration-seconds.ts";
import { denyServiceExternalIPs } from "./deny-service-external-ips/deny-service-external-ips.ts";
import { eventRateLimit } from "./event-rate-limit/event-rate-limit.ts";
import { extendedResourceToleration } from "./extended-resource-toleration/extended-resource-toleration.ts";
import type { PluginRow } from "../chain/factory.ts";
import { imagePolicyWebhook } from "./image-policy-webhook/image-policy.ts";
import { limitPodHardAntiAffinityTopology } from "./limit-pod-hard-anti-affinity-topology/limit-pod-hard-anti-affinity-topology.ts";
import { limitRanger } from "./limit-ranger/limit-ranger.ts";
import { namespaceAutoProvision, namespaceExists } from "./namespace-exists/namespace-exists.ts";
import { namespaceLifecycle } from "./namespace-lifecycle/namespace-lifecycle.ts";
import { nodeRestriction } from "./node-restriction/node-restriction.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references-permission-enforcement/owner-references-permission-enforcement.ts";
import { persistentVolumeClaimResize, storageObjectInUseProtection } from "./storage-object-in-use-protection/storage-object-in-use-protection.ts";
import { podNodeSelector } from "./pod-node-selector/pod-node-selector.ts";
import { podSecurity } from "./pod-security/pod-security.ts";
import { podTolerationRestriction } from "./pod-toleration-restriction/pod-toleration-restriction.ts";
import { podTopologyLabels } from "./pod-topology-labels/pod-topology-labels.ts";
import { priority } from "./priority/priority.ts";
import { resourceQuota } from "./resource-quota/resource-quota.ts";
import { runtimeClass } from "./runtime-class/runtime-class.ts";
import { serviceAccount } from "./service-account/service-account.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition/taint-nodes-by-condition.ts";
import { mutatingAdmissionWebhook } from "../webhooks/mutating.ts";
import { validatingAdmissionWebhook } from "../webhooks/validating.ts";

export const plugins: readonly PluginRow[] = [
  { name: "AlwaysAdmit", byDefault: false, make: alwaysAdmit },
  { name: "NamespaceAutoProvision", byDefault: false, make: namespaceAutoProvision },
  { name: "NamespaceLifecycle", byDefault: true, make: namespaceLifecycle },
  { name: "NamespaceExists", byDefault: false, make: namespaceExists },
  { name: "LimitPodHardAntiAffinityTopology", byDefault: false, make: limitPodHardAntiAffinityTopology },
  { name: "LimitRanger", byDefault: true, make: limitRanger },
  { name: "ServiceAccount", byDefault: true, make: serviceAccount },
  { name: "NodeRestriction", byDefault: false, make: nodeRestriction },
  { name: "TaintNodesByCondition", byDefault: true, make: taintNodesByCondition },
  { name: "AlwaysPullImages", byDefault: false, make: alwaysPullImages },
  { name: "ImagePolicyWebhook", byDefault: false, make: imagePolicyWebhook },
  { name: "PodSecurity", byDefault: true, make: podSecurity },
  { name: "PodNodeSelector", byDefault: false, make: podNodeSelector },
  { name: "Priority", byDefault: true, make: priority },
  { name: "DefaultTolerationSeconds", byDefault: true, make: defaultTolerationSeconds },
  { name: "PodTolerationRestriction", byDefault: false, make: podTolerationRestriction },
  { name: "EventRateLimit", byDefault: false, make: eventRateLimit },
  { name: "ExtendedResourceToleration", byDefault: false, make: extendedResourceToleration },
  { name: "DefaultStorageClass", byDefault: true, make: defaultStorageClass },
  { name: "StorageObjectInUseProtection", byDefault: true, make: storageObjectInUseProtection },
  { name: "OwnerReferencesPermissionEnforcement", byDefault: false, make: ownerReferencesPermissionEnforcement },
  { name: "PersistentVolumeClaimResize", byDefault: true, make: persistentVolumeClaimResize },
  { name: "RuntimeClass", byDefault: true, make: runtimeClass },
  { name: "CertificateApproval", byDefault: true, make: certificateApproval },
  { name: "CertificateSigning", byDefault: true, make: certificateSigning },
  { name: "ClusterTrustBundleAttest", byDefault: true, gate: "ClusterTrustBundle", make: clusterTrustBundleAttest },
  { name: "CertificateSubjectRestriction", byDefault: true, make: certificateSubjectRestriction },
  { name: "DefaultIngressClass", byDefault: true, make: defaultIngressClass },
  { name: "PodTopologyLabels", byDefault: true, gate: "PodTopologyLabelsAdmission", make: podTopologyLabels },
  { name: "DenyServiceExternalIPs", byDefault: false, make: denyServiceExternalIPs },
  { name: "MutatingAdmissionPolicy", byDefault: true, gate: "MutatingAdmissionPolicy" },
  { name: "MutatingAdmissionWebhook", byDefault: true, make: mutatingAdmissionWebhook },
  { name: "ValidatingAdmissionPolicy", byDefault: true },
  { name: "ValidatingAdmissionWebhook", byDefault: true, make: validatingAdmissionWebhook },
  { name: "ResourceQuota", byDefault: true, make: resourceQuota },
  { name: "AlwaysDeny", byDefault: false, make: alwaysDeny },
];
