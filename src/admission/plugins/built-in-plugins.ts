/** The table of all admission plugins of Kubernetes, in the order in which they run. */

import type { PluginRow } from "../chain/factory.ts";
import { validatingAdmissionPolicy } from "../policies/validating-admission-policy.ts";
import { mutatingAdmissionWebhook } from "../webhooks/mutating.ts";
import { validatingAdmissionWebhook } from "../webhooks/validating.ts";
import { certificateApproval } from "./certificate-approval/certificate-approval.ts";
import { certificateSigning } from "./certificate-signing/certificate-signing.ts";
import { certificateSubjectRestriction } from "./certificate-subject-restriction/certificate-subject-restriction.ts";
import { clusterTrustBundleAttest } from "./cluster-trust-bundle-attest/cluster-trust-bundle-attest.ts";
import { defaultIngressClass } from "./default-ingress-class/default-ingress-class.ts";
import { defaultStorageClass } from "./default-storage-class/default-storage-class.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds/default-toleration-seconds.ts";
import { limitRanger } from "./limit-ranger/limit-ranger.ts";
import { namespaceLifecycle } from "./namespace-lifecycle/namespace-lifecycle.ts";
import { persistentVolumeClaimResize } from "./persistent-volume-claim-resize/persistent-volume-claim-resize.ts";
import { podSecurity } from "./pod-security/pod-security.ts";
import { podTopologyLabels } from "./pod-topology-labels/pod-topology-labels.ts";
import { priority } from "./priority/priority.ts";
import { resourceQuota } from "./resource-quota/resource-quota.ts";
import { runtimeClass } from "./runtime-class/runtime-class.ts";
import { serviceAccount } from "./service-account/service-account.ts";
import { storageObjectInUseProtection } from "./storage-object-in-use-protection/storage-object-in-use-protection.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition/taint-nodes-by-condition.ts";

/** The code of plugins that are disabled by default is loaded when they are enabled. */
export const plugins: readonly PluginRow[] = [
  {
    name: "AlwaysAdmit",
    enabledByDefault: false,
    create: async () => (await import("./always-admit/always-admit.ts")).alwaysAdmit(),
  },
  {
    name: "NamespaceAutoProvision",
    enabledByDefault: false,
    create: async (deps) =>
      (await import("./namespace-auto-provision/namespace-auto-provision.ts")).namespaceAutoProvision(deps),
  },
  { name: "NamespaceLifecycle", enabledByDefault: true, create: namespaceLifecycle },
  {
    name: "NamespaceExists",
    enabledByDefault: false,
    create: async (deps) => (await import("./namespace-exists/namespace-exists.ts")).namespaceExists(deps),
  },
  {
    name: "LimitPodHardAntiAffinityTopology",
    enabledByDefault: false,
    create: async () =>
      (
        await import("./limit-pod-hard-anti-affinity-topology/limit-pod-hard-anti-affinity-topology.ts")
      ).limitPodHardAntiAffinityTopology(),
  },
  { name: "LimitRanger", enabledByDefault: true, create: limitRanger },
  { name: "ServiceAccount", enabledByDefault: true, create: serviceAccount },
  {
    name: "NodeRestriction",
    enabledByDefault: false,
    create: async (deps) => (await import("./node-restriction/node-restriction.ts")).nodeRestriction(deps),
  },
  { name: "TaintNodesByCondition", enabledByDefault: true, create: taintNodesByCondition },
  {
    name: "AlwaysPullImages",
    enabledByDefault: false,
    create: async () => (await import("./always-pull-images/always-pull-images.ts")).alwaysPullImages(),
  },
  {
    name: "ImagePolicyWebhook",
    enabledByDefault: false,
    create: async (deps) => (await import("./image-policy-webhook/image-policy.ts")).imagePolicyWebhook(deps),
  },
  { name: "PodSecurity", enabledByDefault: true, create: podSecurity },
  {
    name: "PodNodeSelector",
    enabledByDefault: false,
    create: async (deps) => (await import("./pod-node-selector/pod-node-selector.ts")).podNodeSelector(deps),
  },
  { name: "Priority", enabledByDefault: true, create: priority },
  { name: "DefaultTolerationSeconds", enabledByDefault: true, create: defaultTolerationSeconds },
  {
    name: "PodTolerationRestriction",
    enabledByDefault: false,
    create: async (deps) =>
      (await import("./pod-toleration-restriction/pod-toleration-restriction.ts")).podTolerationRestriction(deps),
  },
  {
    name: "EventRateLimit",
    enabledByDefault: false,
    create: async (deps) => (await import("./event-rate-limit/event-rate-limit.ts")).eventRateLimit(deps),
  },
  {
    name: "ExtendedResourceToleration",
    enabledByDefault: false,
    create: async () =>
      (await import("./extended-resource-toleration/extended-resource-toleration.ts")).extendedResourceToleration(),
  },
  { name: "DefaultStorageClass", enabledByDefault: true, create: defaultStorageClass },
  { name: "StorageObjectInUseProtection", enabledByDefault: true, create: storageObjectInUseProtection },
  {
    name: "OwnerReferencesPermissionEnforcement",
    enabledByDefault: false,
    create: async (deps) =>
      (
        await import("./owner-references-permission-enforcement/owner-references-permission-enforcement.ts")
      ).ownerReferencesPermissionEnforcement(deps),
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
  {
    name: "DenyServiceExternalIPs",
    enabledByDefault: false,
    create: async () =>
      (await import("./deny-service-external-ips/deny-service-external-ips.ts")).denyServiceExternalIPs(),
  },
  {
    name: "MutatingAdmissionPolicy",
    enabledByDefault: true,
    featureGate: "MutatingAdmissionPolicy",
    create: async (deps) => (await import("../policies/mutating-admission-policy.ts")).mutatingAdmissionPolicy(deps),
  },
  { name: "MutatingAdmissionWebhook", enabledByDefault: true, create: mutatingAdmissionWebhook },
  { name: "ValidatingAdmissionPolicy", enabledByDefault: true, create: validatingAdmissionPolicy },
  { name: "ValidatingAdmissionWebhook", enabledByDefault: true, create: validatingAdmissionWebhook },
  { name: "ResourceQuota", enabledByDefault: true, create: resourceQuota },
  {
    name: "AlwaysDeny",
    enabledByDefault: false,
    create: async () => (await import("./always-deny/always-deny.ts")).alwaysDeny(),
  },
];
