/**
 * The fields that exist only while a feature gate is on. While it is off a write drops them, silently like unknown
 * fields, unless the stored object uses the feature (`dropDisabledFields` and its like in Kubernetes' strategies).
 */
import type { FeatureLookup } from "../../flags/gates.ts";
import type { GatedFields } from "./gated-fields.ts";
import { dropImageVolumes, hasImageVolume } from "./image-volumes.ts";
import { resourceRules } from "./resource-rules.ts";

const CONTAINERS = ["containers", "initContainers", "ephemeralContainers"];
const STATUSES = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];

const inContainers = (...fields: readonly string[]): readonly string[] =>
  CONTAINERS.flatMap((list) => fields.map((field) => `${list}[].${field}`));
const inStatuses = (field: string): readonly string[] => STATUSES.map((list) => `status.${list}[].${field}`);
const gate = (name: string, ...paths: readonly string[]): GatedFields => ({ gates: [name], paths });

const DEFAULT_PROC_MOUNT = "Default";

/** The fields of pods and pod templates; paths begin at the pod's spec. */
const podSpecRules: readonly GatedFields[] = [
  gate("UserNamespacesSupport", "hostUsers"),
  gate("SupplementalGroupsPolicy", "securityContext.supplementalGroupsPolicy"),
  gate("SELinuxChangePolicy", "securityContext.seLinuxChangePolicy"),
  gate("PodLevelResources", "resources"),
  gate("MatchLabelKeysInPodTopologySpread", "topologySpreadConstraints[].matchLabelKeys"),
  gate("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
  {
    gates: ["DynamicResourceAllocation"],
    paths: ["resourceClaims", ...inContainers("resources.claims")],
    usedAt: ["resourceClaims"],
  },
  {
    gates: ["InPlacePodVerticalScaling"],
    paths: inContainers("resizePolicy"),
    usedAt: ["containers[].resizePolicy", "initContainers[].resizePolicy"],
  },
  {
    gates: ["ProcMountType"],
    paths: inContainers("securityContext.procMount"),
    isUsed: (previous) => usesProcMount(previous),
    replacement: DEFAULT_PROC_MOUNT,
  },
  {
    gates: ["PodLifecycleSleepAction"],
    paths: inContainers("lifecycle.preStop.sleep", "lifecycle.postStart.sleep"),
    prunes: true,
  },
  { gates: ["ContainerStopSignals"], paths: inContainers("lifecycle.stopSignal"), prunes: true },
  { gates: ["ImageVolume"], paths: [], isUsed: hasImageVolume, drop: dropImageVolumes },
];

function usesProcMount(spec: unknown): boolean {
  type Containers = readonly { readonly securityContext?: { readonly procMount?: string } }[] | undefined;
  const lists = spec as Readonly<Record<string, Containers>> | undefined;
  return CONTAINERS.some((list) =>
    lists?.[list]?.some(({ securityContext }) => (securityContext?.procMount ?? DEFAULT_PROC_MOUNT) !== "Default"),
  );
}

const RESIZE_POLICIES = ["spec.containers[].resizePolicy", "spec.initContainers[].resizePolicy"];

const podStatusRules: readonly GatedFields[] = [
  {
    gates: ["InPlacePodVerticalScaling"],
    paths: [...inStatuses("resources"), "status.resize"],
    usedAt: RESIZE_POLICIES,
  },
  {
    gates: ["InPlacePodVerticalScaling", "InPlacePodVerticalScalingAllocatedStatus"],
    paths: inStatuses("allocatedResources"),
    isUsed: () => false,
  },
  { gates: ["DynamicResourceAllocation"], paths: ["status.resourceClaimStatuses"], usedAt: ["spec.resourceClaims"] },
  { gates: ["ResourceHealthStatus"], paths: inStatuses("allocatedResourcesStatus"), isUsed: () => false },
  {
    gates: ["SupplementalGroupsPolicy"],
    paths: inStatuses("user"),
    usedAt: ["spec.securityContext.supplementalGroupsPolicy"],
  },
  {
    gates: ["ContainerStopSignals"],
    paths: inStatuses("stopSignal"),
    usedAt: CONTAINERS.map((list) => `spec.${list}[].lifecycle.stopSignal`),
  },
  {
    gates: ["PodObservedGenerationTracking"],
    paths: ["status.observedGeneration", "status.conditions[].observedGeneration"],
  },
];

/** The path of the pod's spec, by resource. */
export const podSpecPaths: Readonly<Record<string, string>> = {
  "/pods": "spec",
  "/podtemplates": "template.spec",
  "/replicationcontrollers": "spec.template.spec",
  "apps/daemonsets": "spec.template.spec",
  "apps/deployments": "spec.template.spec",
  "apps/replicasets": "spec.template.spec",
  "apps/statefulsets": "spec.template.spec",
  "batch/cronjobs": "spec.jobTemplate.spec.template.spec",
  "batch/jobs": "spec.template.spec",
};

/** By group and resource, for the storage version of a kind. */
const rulesByResource: Readonly<Record<string, readonly GatedFields[]>> = {
  "/pods": podStatusRules,
  "/nodes": [gate("SupplementalGroupsPolicy", "status.features")],
  "/persistentvolumes": [gate("VolumeAttributesClass", "spec.volumeAttributesClassName")],
  "/persistentvolumeclaims": [
    gate("VolumeAttributesClass", "spec.volumeAttributesClassName"),
    {
      gates: ["VolumeAttributesClass"],
      paths: ["status.currentVolumeAttributesClassName", "status.modifyVolumeStatus"],
      usedAt: ["status.currentVolumeAttributesClassName"],
    },
    gate("RecoverVolumeExpansionFailure", "status.allocatedResources"),
    gate("RecoverVolumeExpansionFailure", "status.allocatedResourceStatuses"),
    {
      gates: ["CrossNamespaceVolumeDataSource"],
      paths: [],
      isUsed: hasForeignDataSource,
      drop: dropForeignDataSource,
    },
  ],
  "apps/deployments": [gate("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas")],
  "apps/replicasets": [gate("DeploymentReplicaSetTerminatingReplicas", "status.terminatingReplicas")],
  "apps/statefulsets": [gate("MaxUnavailableStatefulSet", "spec.updateStrategy.rollingUpdate.maxUnavailable")],
  "autoscaling/horizontalpodautoscalers": [
    gate("HPAConfigurableTolerance", "spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance"),
  ],
  "batch/jobs": [gate("JobManagedBy", "spec.managedBy"), gate("JobPodReplacementPolicy", "spec.podReplacementPolicy")],
  "coordination.svc.io/leases": [
    gate("CoordinatedLeaderElection", "spec.strategy"),
    gate("CoordinatedLeaderElection", "spec.preferredHolder"),
  ],
  "discovery.svc.io/endpointslices": [
    { ...gate("PreferSameTrafficDistribution", "endpoints[].hints.forNodes"), prunes: true },
  ],
  "storage.svc.io/csidrivers": [
    gate("SELinuxMountReadWriteOncePod", "spec.seLinuxMount"),
    gate("MutableCSINodeAllocatableCount", "spec.nodeAllocatableUpdatePeriodSeconds"),
  ],
  "storage.svc.io/volumeattachments": [
    gate("MutableCSINodeAllocatableCount", "status.attachError.errorCode", "status.detachError.errorCode"),
  ],
  ...resourceRules,
};

interface WithDataSource {
  readonly spec?: { readonly dataSourceRef?: { readonly namespace?: string } };
}

function hasForeignDataSource(claim: unknown): boolean {
  return (claim as WithDataSource | undefined)?.spec?.dataSourceRef?.namespace !== undefined;
}

/** The whole reference is dropped. */
function dropForeignDataSource(claim: unknown): unknown {
  const { spec } = claim as WithDataSource;
  if (!spec?.dataSourceRef?.namespace) return claim;
  const { dataSourceRef: _, ...rest } = spec;
  return { ...(claim as object), spec: rest };
}

export interface ScopedRule {
  readonly rule: GatedFields;
  /** The path of the pod's spec; empty for the object itself. */
  readonly scope: string;
}

/** The rules of a resource whose gates are off. */
export function disabledRules(group: string, plural: string, features: FeatureLookup): readonly ScopedRule[] {
  const resource = `${group}/${plural}`;
  const podSpec = podSpecPaths[resource];
  const scoped: readonly ScopedRule[] = [
    ...(podSpec === undefined ? [] : podSpecRules.map((rule) => ({ rule, scope: podSpec }))),
    ...(rulesByResource[resource] ?? []).map((rule) => ({ rule, scope: "" })),
  ];
  return scoped.filter(({ rule }) => !rule.gates.every((name) => features.has(name)));
}
