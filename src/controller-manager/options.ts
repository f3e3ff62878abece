/** Converts the flags of `svc controller-manager` to its options. */
import type { KeyPairFiles } from "../auth/pki/key-pair.ts";
import { type CborUse, cborUseOf } from "../client/api-client.ts";
import type { ConnectionOptions } from "../component/connection.ts";
import { type LeaseOptions, leaseOptions } from "../component/lease-options.ts";
import type { ControllerOptions } from "../controllers/controller-options.ts";
import { type SigningAuthorities, singleAuthority } from "../controllers/signing-authorities.ts";
import type { ParsedFlags } from "../flags/flag.ts";
import { controllerManagerGates } from "../flags/gate-tables/controller-manager.ts";
import { FeatureGates, type FeatureLookup } from "../flags/gates.ts";
import { isChanged } from "../flags/parse.ts";
import { parseCidr } from "../std/net/ip.ts";
import { selectControllers } from "./controller-names.ts";
import { concurrencyFlags, controllerManagerFlags } from "./flags.ts";

type Flags = ParsedFlags<typeof controllerManagerFlags>;

export interface ControllerManagerOptions {
  readonly controllers: readonly string[];
  readonly controllerOptions: Partial<ControllerOptions>;
  readonly features: FeatureLookup;
  readonly connection: Omit<ConnectionOptions, "userAgent">;
  readonly contentType: Flags["kube-api-content-type"];
  /** Whether informers get their first objects with their watch. */
  readonly streamsLists: boolean;
  readonly cbor: CborUse | undefined;
  readonly usesAccounts: boolean;
  /** Empty: not configured. */
  readonly rootCaFile: string;
  readonly accountKeyFile: string;
  readonly signing: SigningAuthorities | undefined;
  /** Undefined: it works without a lease. */
  readonly election: LeaseOptions | undefined;
}

export function controllerManagerOptions(
  flags: Flags,
  features: FeatureLookup = new FeatureGates(controllerManagerGates),
): ControllerManagerOptions {
  const selected = selectControllers(flags.controllers);
  return {
    controllers: selected.names.filter((name) => name !== "garbage-collector" || flags["enable-garbage-collector"]),
    controllerOptions: {
      ...controllerOptions(flags),
      // Without its gate the controller is a part of that of the node lifecycle.
      evictsPods: !features.has("SeparateTaintEvictionController") || selected.evictsPods,
    },
    features,
    connection: {
      kubeconfig: flags.kubeconfig,
      server: flags.master,
      qps: flags["kube-api-qps"],
      burst: flags["kube-api-burst"],
    },
    contentType: flags["kube-api-content-type"],
    streamsLists: features.has("WatchListClient"),
    cbor: cborUseOf(features.has("ClientsAllowCBOR"), features.has("ClientsPreferCBOR")),
    usesAccounts: flags["use-service-account-credentials"],
    rootCaFile: flags["root-ca-file"],
    accountKeyFile: flags["service-account-private-key-file"],
    signing: signingAuthorities(flags),
    election: leaseOptions(flags),
  };
}

/** Undefined if no requests are signed. */
function signingAuthorities(flags: Flags): SigningAuthorities | undefined {
  const pairOf = (
    name: "" | "kube-apiserver-client-" | "kubelet-client-" | "kubelet-serving-" | "legacy-unknown-",
  ): KeyPairFiles | undefined => {
    const certFile = flags[`cluster-signing-${name}cert-file`];
    return certFile === "" ? undefined : { certFile, keyFile: flags[`cluster-signing-${name}key-file`] };
  };
  const lifetimeMs = flags["cluster-signing-duration"];
  const single = pairOf("");
  if (single !== undefined) return singleAuthority(single, lifetimeMs);
  const authorities = {
    clients: pairOf("kube-apiserver-client-"),
    nodeClients: pairOf("kubelet-client-"),
    nodeServing: pairOf("kubelet-serving-"),
    legacy: pairOf("legacy-unknown-"),
  };
  const hasNone = Object.values(authorities).every((files) => files === undefined);
  return hasNone ? undefined : { ...authorities, lifetimeMs };
}

function controllerOptions(flags: Flags): Partial<ControllerOptions> {
  const [family] = flags["cluster-cidr"].map((range) => parseCidr(range)?.family);
  const shared = flags["node-cidr-mask-size"];
  const sharedFor = (name: "IPv4" | "IPv6"): number => (family === name ? shared : 0);
  return {
    concurrentSyncs: concurrentSyncs(flags),
    startIntervalMs: flags["controller-start-interval"],
    provisionsVolumes: flags["enable-dynamic-provisioning"],
    claimBinderSyncPeriodMs: flags["pvclaimbinder-sync-period"],
    disableForceDetachOnTimeout: flags["disable-force-detach-on-timeout"],
    terminatedPodGcThreshold: flags["terminated-pod-gc-threshold"],
    nodeMonitorGracePeriodMs: flags["node-monitor-grace-period"],
    nodeStartupGracePeriodMs: flags["node-startup-grace-period"],
    evictions: {
      nodesPerSecond: flags["node-eviction-rate"],
      nodesPerSecondDisrupted: flags["secondary-node-eviction-rate"],
      disruptedShare: flags["unhealthy-zone-threshold"],
      largeZoneNodes: flags["large-cluster-size-threshold"],
    },
    quotaSyncPeriodMs: flags["resource-quota-sync-period"],
    legacyTokenCleanUpPeriodMs: flags["legacy-service-account-token-clean-up-period"],
    autoscaler: {
      syncPeriodMs: flags["horizontal-pod-autoscaler-sync-period"],
      tolerance: flags["horizontal-pod-autoscaler-tolerance"],
      downscaleStabilizationMs: flags["horizontal-pod-autoscaler-downscale-stabilization"],
      cpuInitializationPeriodMs: flags["horizontal-pod-autoscaler-cpu-initialization-period"],
      initialReadinessDelayMs: flags["horizontal-pod-autoscaler-initial-readiness-delay"],
    },
    endpoints: {
      perSlice: flags["max-endpoints-per-slice"],
      mirroredPerSubset: flags["mirroring-max-endpoints-per-subset"],
      sliceBatchMs: flags["endpointslice-updates-batch-period"],
      endpointsBatchMs: flags["endpoint-updates-batch-period"],
      mirroringBatchMs: flags["mirroring-endpointslice-updates-batch-period"],
    },
    clusterCidrs: flags["allocate-node-cidrs"] ? flags["cluster-cidr"] : [],
    serviceCidrs: flags["service-cluster-ip-range"],
    nodeCidrMaskSizes: {
      ipv4: flags["node-cidr-mask-size-ipv4"] || sharedFor("IPv4") || 24,
      ipv6: flags["node-cidr-mask-size-ipv6"] || sharedFor("IPv6") || 64,
    },
  };
}

/** Only what differs from the defaults of the flags, since some controllers have fewer workers than Kubernetes'. */
function concurrentSyncs(flags: Flags): Readonly<Record<string, number>> {
  const names = Object.keys(concurrencyFlags) as (keyof typeof concurrencyFlags)[];
  const changed = names.filter((name) => isChanged(controllerManagerFlags[name], flags[name]));
  return Object.fromEntries(changed.map((name) => [concurrencyFlags[name], flags[name]]));
}
