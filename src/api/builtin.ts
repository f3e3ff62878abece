/** The built-in kinds. A new kind is registered here. */

import type { FeatureLookup } from "../flags/gates.ts";
import { validatingAdmissionPolicyKind } from "./admissionregistration/validating-admission-policy/kind.ts";
import { validatingAdmissionPolicyBindingKind } from "./admissionregistration/validating-admission-policy-binding/kind.ts";
import { mutatingWebhookConfigurationKind } from "./admissionregistration/webhook-configuration/mutating.ts";
import { validatingWebhookConfigurationKind } from "./admissionregistration/webhook-configuration/validating-kind.ts";
import { customResourceDefinitionKind } from "./apiextensions/custom-resource-definition/kind.ts";
import { apiServiceKind } from "./apiregistration/api-service/kind.ts";
import { controllerRevisionKind } from "./apps/controller-revision/kind.ts";
import { daemonSetKind } from "./apps/daemon-set/kind.ts";
import { deploymentKind } from "./apps/deployment/kind.ts";
import { replicaSetKind } from "./apps/replica-set/kind.ts";
import { statefulSetKind } from "./apps/stateful-set/kind.ts";
import { selfSubjectReviewKind, tokenReviewKind } from "./authentication/review-kinds.ts";
import {
  localSubjectAccessReviewKind,
  selfSubjectAccessReviewKind,
  selfSubjectRulesReviewKind,
  subjectAccessReviewKind,
} from "./authorization/access-review/kinds.ts";
import { horizontalPodAutoscalerKind } from "./autoscaling/horizontal-pod-autoscaler/kind.ts";
import { horizontalPodAutoscalerV1Kind } from "./autoscaling/horizontal-pod-autoscaler-v1/kind.ts";
import { cronJobKind } from "./batch/cron-job/kind.ts";
import { jobKind } from "./batch/job/kind.ts";
import { certificateSigningRequestKind } from "./certificates/certificate-signing-request/kind.ts";
import { leaseKind } from "./coordination/lease/kind.ts";
import { bindingKind } from "./core/binding/kind.ts";
import { componentStatusKind } from "./core/component-status/kind.ts";
import { configMapKind } from "./core/config-map/kind.ts";
import { endpointsKind } from "./core/endpoints/kind.ts";
import { eventKind } from "./core/event/kind.ts";
import { limitRangeKind } from "./core/limit-range/kind.ts";
import { namespaceKind } from "./core/namespace/kind.ts";
import { nodeKind } from "./core/node/kind.ts";
import { persistentVolumeKind } from "./core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "./core/persistent-volume-claim/kind.ts";
import { podKind } from "./core/pod/kind.ts";
import { podTemplateKind } from "./core/pod-template/kind.ts";
import { replicationControllerKind } from "./core/replication-controller/kind.ts";
import { resourceQuotaKind } from "./core/resource-quota/kind.ts";
import { secretKind } from "./core/secret/kind.ts";
import { serviceKind } from "./core/service/kind.ts";
import { serviceAccountKind } from "./core/service-account/kind.ts";
import { endpointSliceKind } from "./discovery/endpoint-slice/kind.ts";
import { eventsV1EventKind } from "./events/event/kind.ts";
import { flowSchemaKind } from "./flowcontrol/flow-schema/kind.ts";
import { priorityLevelConfigurationKind } from "./flowcontrol/priority-level-configuration/kind.ts";
import type { Kind } from "./kind.ts";
import { nodeMetricsKind, podMetricsKind } from "./metrics/kinds.ts";
import { ingressKind } from "./networking/ingress/kind.ts";
import { ingressClassKind } from "./networking/ingress-class/kind.ts";
import { ipAddressKind } from "./networking/ip-address/kind.ts";
import { networkPolicyKind } from "./networking/network-policy/kind.ts";
import { serviceCIDRKind } from "./networking/service-cidr/kind.ts";
import { runtimeClassKind } from "./node/runtime-class/kind.ts";
import { podDisruptionBudgetKind } from "./policy/pod-disruption-budget/kind.ts";
import { clusterRoleKind } from "./rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "./rbac/cluster-role-binding/kind.ts";
import { roleKind } from "./rbac/role/kind.ts";
import { roleBindingKind } from "./rbac/role-binding/kind.ts";
import { priorityClassKind } from "./scheduling/priority-class/kind.ts";
import { Scheme } from "./scheme.ts";
import { csiDriverKind } from "./storage/csi-driver/kind.ts";
import { csiNodeKind } from "./storage/csi-node/kind.ts";
import { csiStorageCapacityKind } from "./storage/csi-storage-capacity/kind.ts";
import { storageClassKind } from "./storage/storage-class/kind.ts";
import { volumeAttachmentKind } from "./storage/volume-attachment/kind.ts";

/**
 * In the order of Kubernetes' discovery, preferred versions first: clients resolve a resource name that two groups
 * share to the first group.
 */
export const builtinKinds: readonly Kind[] = [
  bindingKind,
  componentStatusKind,
  configMapKind,
  endpointsKind,
  eventKind,
  limitRangeKind,
  namespaceKind,
  nodeKind,
  persistentVolumeClaimKind,
  persistentVolumeKind,
  podKind,
  podTemplateKind,
  replicationControllerKind,
  resourceQuotaKind,
  secretKind,
  serviceAccountKind,
  serviceKind,
  apiServiceKind,
  controllerRevisionKind,
  daemonSetKind,
  deploymentKind,
  replicaSetKind,
  statefulSetKind,
  eventsV1EventKind,
  selfSubjectReviewKind,
  tokenReviewKind,
  localSubjectAccessReviewKind,
  selfSubjectAccessReviewKind,
  selfSubjectRulesReviewKind,
  subjectAccessReviewKind,
  horizontalPodAutoscalerKind,
  horizontalPodAutoscalerV1Kind,
  cronJobKind,
  jobKind,
  certificateSigningRequestKind,
  ingressClassKind,
  ingressKind,
  ipAddressKind,
  networkPolicyKind,
  serviceCIDRKind,
  podDisruptionBudgetKind,
  clusterRoleBindingKind,
  clusterRoleKind,
  roleBindingKind,
  roleKind,
  csiDriverKind,
  csiNodeKind,
  csiStorageCapacityKind,
  storageClassKind,
  volumeAttachmentKind,
  mutatingWebhookConfigurationKind,
  validatingAdmissionPolicyBindingKind,
  validatingAdmissionPolicyKind,
  validatingWebhookConfigurationKind,
  customResourceDefinitionKind,
  priorityClassKind,
  leaseKind,
  runtimeClassKind,
  endpointSliceKind,
  flowSchemaKind,
  priorityLevelConfigurationKind,
  nodeMetricsKind,
  podMetricsKind,
];

export function builtinScheme(): Scheme {
  return schemeOf(builtinKinds);
}

export function schemeOf(kinds: readonly Kind[], features?: FeatureLookup): Scheme {
  const scheme = new Scheme(features);
  for (const kind of kinds) scheme.register(kind);
  return scheme;
}
