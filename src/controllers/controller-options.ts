/** Settings of single controllers, by kube-controller-manager's flags and with its defaults. Times in milliseconds. */
export interface ControllerOptions {
  /** `--concurrent-*-syncs`: keys that a controller syncs at the same time, by its name; absent: its own default. */
  readonly concurrentSyncs: Readonly<Record<string, number>>;
  /** `--controller-start-interval`: between the starts of two controllers. */
  readonly startIntervalMs: number;
  /** `--enable-dynamic-provisioning`: volumes are requested from the provisioners of classes. */
  readonly provisionsVolumes: boolean;
  /** `--pvclaimbinder-sync-period`: how often pending claims and volumes are synced again. */
  readonly claimBinderSyncPeriodMs: number;
  /** `--disable-force-detach-on-timeout`: volumes in use are not detached from unhealthy nodes after six minutes. */
  readonly disableForceDetachOnTimeout: boolean;
  /** `--cluster-cidr` with `--allocate-node-cidrs`; empty: nodes get no pod CIDRs. */
  readonly clusterCidrs: readonly string[];
  /** `--node-cidr-mask-size` and those of one family: the prefix length of a node's pod CIDR. */
  readonly nodeCidrMaskSizes: { readonly ipv4: number; readonly ipv6: number };
  /** Pod CIDRs that nodes have already outside of the API, by node: they get just these. */
  readonly nodeCidrs: Readonly<Record<string, readonly string[]>>;
  /** `--service-cluster-ip-range`: nodes get no pod CIDRs of these ranges. */
  readonly serviceCidrs: readonly string[];
  /** `--terminated-pod-gc-threshold`: how many finished pods may stay; 0: all. */
  readonly terminatedPodGcThreshold: number;
  /** `--node-monitor-grace-period`: after this time without a heartbeat a node is not ready. */
  readonly nodeMonitorGracePeriodMs: number;
  /** `--node-startup-grace-period`: the same for a node that has never sent one. */
  readonly nodeStartupGracePeriodMs: number;
  readonly evictions: EvictionOptions;
  /** Whether pods are evicted for taints of their nodes. */
  readonly evictsPods: boolean;
  /** `--resource-quota-sync-period`: how often the usage of all quotas is calculated again. */
  readonly quotaSyncPeriodMs: number;
  /** `--legacy-service-account-token-clean-up-period`: how long an unused token secret stays, then an invalid one. */
  readonly legacyTokenCleanUpPeriodMs: number;
  /** `--horizontal-pod-autoscaler-*` */
  readonly autoscaler: AutoscalerOptions;
  readonly endpoints: EndpointsOptions;
}

export interface EndpointsOptions {
  /** `--max-endpoints-per-slice` */
  readonly perSlice: number;
  /** `--mirroring-max-endpoints-per-subset` */
  readonly mirroredPerSubset: number;
  /** `--endpointslice-updates-batch-period`: how long changes of pods are collected. */
  readonly sliceBatchMs: number;
  /** `--endpoint-updates-batch-period`: the same for Endpoints. */
  readonly endpointsBatchMs: number;
  /** `--mirroring-endpointslice-updates-batch-period`: how long changes of mirrored slices are collected. */
  readonly mirroringBatchMs: number;
}

/** Evictions of pods from nodes that are not ready, in one zone. */
export interface EvictionOptions {
  /** `--node-eviction-rate`: nodes a second. */
  readonly nodesPerSecond: number;
  /** `--secondary-node-eviction-rate`: the same for a large zone that is disrupted; none in a small one. */
  readonly nodesPerSecondDisrupted: number;
  /** `--unhealthy-zone-threshold`: the share of nodes that are not ready in a disrupted zone. */
  readonly disruptedShare: number;
  /** `--large-cluster-size-threshold`: a zone with more nodes is large. */
  readonly largeZoneNodes: number;
}

export interface AutoscalerOptions {
  /** `sync-period` */
  readonly syncPeriodMs: number;
  /** `tolerance`: a usage that differs less from the target changes nothing. */
  readonly tolerance: number;
  /** `downscale-stabilization`: a scale down uses the highest recommendation of this time. */
  readonly downscaleStabilizationMs: number;
  /** `cpu-initialization-period`: after the start of a pod its CPU usage may be ignored. */
  readonly cpuInitializationPeriodMs: number;
  /** `initial-readiness-delay`: a pod that became unready within it has never been ready. */
  readonly initialReadinessDelayMs: number;
}

export const defaultControllerOptions: ControllerOptions = {
  endpoints: { perSlice: 100, mirroredPerSubset: 1000, sliceBatchMs: 0, endpointsBatchMs: 0, mirroringBatchMs: 0 },
  concurrentSyncs: {},
  startIntervalMs: 0,
  provisionsVolumes: true,
  claimBinderSyncPeriodMs: 15_000,
  disableForceDetachOnTimeout: false,
  clusterCidrs: [],
  nodeCidrMaskSizes: { ipv4: 24, ipv6: 64 },
  nodeCidrs: {},
  serviceCidrs: [],
  terminatedPodGcThreshold: 12_500,
  nodeMonitorGracePeriodMs: 50_000,
  nodeStartupGracePeriodMs: 60_000,
  evictsPods: true,
  evictions: { nodesPerSecond: 0.1, nodesPerSecondDisrupted: 0.01, disruptedShare: 0.55, largeZoneNodes: 50 },
  quotaSyncPeriodMs: 5 * 60_000,
  legacyTokenCleanUpPeriodMs: 365 * 24 * 3_600_000,
  autoscaler: {
    syncPeriodMs: 15_000,
    tolerance: 0.1,
    downscaleStabilizationMs: 5 * 60_000,
    cpuInitializationPeriodMs: 5 * 60_000,
    initialReadinessDelayMs: 30_000,
  },
};
