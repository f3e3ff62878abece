/** The table of all admission plugins of Kubernetes, in the order in which they run. */

import type { PluginRow } from "../chain/factory.ts";
import { mutatingAdmissionWebhook } from "../webhooks/mutating.ts";
import { validatingAdmissionWebhook } from "../webhooks/validating.ts";
import { alwaysAdmit } from "./always-admit/always-admit.ts";
import { alwaysDeny } from "./always-deny/always-deny.ts";
import { alwaysPullImages } from "./always-pull-images/always-pull-images.ts";
import { certificateApproval } from "./certificate-approval/certificate-approval.ts";
import { certificateSigning } from "./certificate-signing/certificate-signing.ts";
import { certificateSubjectRestriction } from "./certificate-subject-restriction/certificate-subject-restriction.ts";
import { clusterTrustBundleAttest } from "./cluster-trust-bundle-attest/cluster-trust-bundle-attest.ts";
import { defaultIngressClass } from "./default-ingress-class/default-ingress-class.ts";
import { defaultStorageClass } from "./default-storage-class/default-storage-class.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds/default-toleration-seconds.ts";
import { denyServiceExternalIPs } from "./deny-service-external-ips/deny-service-external-ips.ts";
import { eventRateLimit } from "./event-rate-limit/event-rate-limit.ts";
import { extendedResourceToleration } from "./extended-resource-toleration/extended-resource-toleration.ts";
import { imagePolicyWebhook } from "./image-policy-webhook/image-policy.ts";
import { limitPodHardAntiAffinityTopology } from "./limit-pod-hard-anti-affinity-topology/limit-pod-hard-anti-affinity-topology.ts";
import { limitRanger } from "./limit-ranger/limit-ranger.ts";
import { namespaceAutoProvision } from "./namespace-auto-provision/namespace-auto-provision.ts";
import { namespaceExists } from "./namespace-exists/namespace-exists.ts";
import { namespaceLifecycle } from "./namespace-lifecycle/namespace-lifecycle.ts";
import { nodeRestriction } from "./node-restriction/node-restriction.ts";
import { ownerReferencesPermissionEnforcement } from "./owner-references-permission-enforcement/owner-references-permission-enforcement.ts";
import { persistentVolumeClaimResize } from "./persistent-volume-claim-resize/persistent-volume-claim-resize.ts";
import { podNodeSelector } from "./pod-node-selector/pod-node-selector.ts";
import { podSecurity } from "./pod-security/pod-security.ts";
import { podTolerationRestriction } from "./pod-toleration-restriction/pod-toleration-restriction.ts";
import { podTopologyLabels } from "./pod-topology-labels/pod-topology-labels.ts";
import { priority } from "./priority/priority.ts";
import { resourceQuota } from "./resource-quota/resource-quota.ts";
import { runtimeClass } from "./runtime-class/runtime-class.ts";
import { serviceAccount } from "./service-account/service-account.ts";
import { storageObjectInUseProtection } from "./storage-object-in-use-protection/storage-object-in-use-protection.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition/taint-nodes-by-condition.ts";

export const plugins: readonly PluginRow[] = [
  { name: "AlwaysAdmit", enabledByDefault: false, create: alwaysAdmit },
  { name: "NamespaceAutoProvision", enabledByDefault: false, create: namespaceAutoProvision },
  { name: "NamespaceLifecycle", enabledByDefault: true, create: namespaceLifecycle },
  { name: "NamespaceExists", enabledByDefault: false, create: namespaceExists },
  { name: "LimitPodHardAntiAffinityTopology", enabledByDefault: false, create: limitPodHardAntiAffinityTopology },
  { name: "LimitRanger", enabledByDefault: true, create: limitRanger },
  { name: "ServiceAccount", enabledByDefault: true, create: serviceAccount },
  { name: "NodeRestriction", enabledByDefault: false, create: nodeRestriction },
  { name: "TaintNodesByCondition", enabledByDefault: true, create: taintNodesByCondition },
  { name: "AlwaysPullImages", enabledByDefault: false, create: alwaysPullImages },
  { name: "ImagePolicyWebhook", enabledByDefault: false, create: imagePolicyWebhook },
  { name: "PodSecurity", enabledByDefault: true, create: podSecurity },
  { name: "PodNodeSelector", enabledByDefault: false, create: podNodeSelector },
  { name: "Priority", enabledByDefault: true, create: priority },
  { name: "DefaultTolerationSeconds", enabledByDefault: true, create: defaultTolerationSeconds },
  { name: "PodTolerationRestriction", enabledByDefault: false, create: podTolerationRestriction },
  { name: "EventRateLimit", enabledByDefault: false, create: eventRateLimit },
  { name: "ExtendedResourceToleration", enabledByDefault: false, create: extendedResourceToleration },
  { name: "DefaultStorageClass", enabledByDefault: true, create: defaultStorageClass },
  { name: "StorageObjectInUseProtection", enabledByDefault: true, create: storageObjectInUseProtection },
  {
    name: "OwnerReferencesPermissionEnforcement",
    enabledByDefault: false,
    create: ownerReferencesPermissionEnforcement,
  },
  { name: "PersistentVolumeClaimResize", enabledByDefault: true, create: persistentVolumeClaimResize },
  { name: "RuntimeClass", enabledByDefault: true, create: runtimeClass },
  { name: "CertificateApproval", enabledByDefault: true, create: certificateApproval },
  { name: "CertificateSigning", enabledByDefault: true, create: certificateSigning },
  {
    name: "ClusterTrustBundleAttest",
    enabledByDefault: true,
    featureGate: "ClusterTrustBundle",
    create: clusterTrustBundleAttest,
  },
  { name: "CertificateSubjectRestriction", enabledByDefault: true, create: certificateSubjectRestriction },
  { name: "DefaultIngressClass", enabledByDefault: true, create: defaultIngressClass },
  {
    name: "PodTopologyLabels",
    enabledByDefault: true,
    featureGate: "PodTopologyLabelsAdmission",
    create: podTopologyLabels,
  },
  { name: "DenyServiceExternalIPs", enabledByDefault: false, create: denyServiceExternalIPs },
  { name: "MutatingAdmissionPolicy", enabledByDefault: true, featureGate: "MutatingAdmissionPolicy" },
  { name: "MutatingAdmissionWebhook", enabledByDefault: true, create: mutatingAdmissionWebhook },
  { name: "ValidatingAdmissionPolicy", enabledByDefault: true },
  { name: "ValidatingAdmissionWebhook", enabledByDefault: true, create: validatingAdmissionWebhook },
  { name: "ResourceQuota", enabledByDefault: true, create: resourceQuota },
  { name: "AlwaysDeny", enabledByDefault: false, create: alwaysDeny },
];
