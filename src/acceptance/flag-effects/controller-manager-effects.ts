/** The effect of each flag of `svc controller-manager`. */
import type { Test } from "tap";
import {
  concurrencyFlags,
  type controllerManagerFlags,
  controllerManagerProgram,
} from "../../controller-manager/flags.ts";
import { type ControllerManagerOptions, controllerManagerOptions } from "../../controller-manager/options.ts";
import { invokeMutant } from "../../testing/flags/mutant.ts";
import { componentEffects, showsGate, warns } from "./component-effects.ts";

type Effects = Partial<Record<keyof typeof controllerManagerFlags, (t: Test) => Promise<void>>>;

function invoke(...argv: readonly string[]) {
  const invoked = invokeMutant(controllerManagerProgram, argv, { version: "v1.33.0" });
  if (invoked.kind === "exit") throw new Error(invoked.stderr);
  return invoked;
}

const options = (...argv: readonly string[]): ControllerManagerOptions =>
  controllerManagerOptions(invoke(...argv).flags);
const settings = (...argv: readonly string[]) => options(...argv).controllerOptions;

function signerEffects(prefix: string, signer: "clients" | "nodeClients" | "nodeServing" | "legacy"): Effects {
  const pair = [`--${prefix}-cert-file=/c`, `--${prefix}-key-file=/k`];
  const signs = async (t: Test): Promise<void> => {
    const { lifetimeMs: _, ...authorities } = options(...pair).signing ?? { lifetimeMs: 0 };
    const configured = Object.entries(authorities).filter(([, files]) => files !== undefined);
    t.same(Object.fromEntries(configured), { [signer]: { certFile: "/c", keyFile: "/k" } });
    t.throws(() => options(...pair.slice(1)), { message: /needs/ });
    t.throws(() => options(...pair.slice(0, 1)), { message: /needs/ });
  };
  return { [`${prefix}-cert-file`]: signs, [`${prefix}-key-file`]: signs };
}

const controllerEffects: Effects = {
  "feature-gates": async (t) => {
    const { flags, gates } = invoke("--feature-gates=AllAlpha=true");
    t.ok(controllerManagerOptions(flags, gates).features.has("AllAlpha"));
    const evictsPods = (...argv: readonly string[]) => {
      const { flags, gates } = invoke("--controllers=*,-taint-eviction-controller", ...argv);
      return controllerManagerOptions(flags, gates).controllerOptions.evictsPods;
    };
    t.equal(evictsPods(), false);
    const clientOptions = (...argv: readonly string[]) => {
      const { flags, gates } = invoke(...argv);
      const { streamsLists, cbor } = controllerManagerOptions(flags, gates);
      return { streamsLists, cbor };
    };
    t.same(clientOptions(), { streamsLists: false, cbor: undefined });
    t.match(clientOptions("--feature-gates=WatchListClient=true"), { streamsLists: true });
    t.match(clientOptions("--feature-gates=ClientsAllowCBOR=true"), { cbor: "accept" });
    t.match(clientOptions("--feature-gates=ClientsAllowCBOR=true,ClientsPreferCBOR=true"), { cbor: "prefer" });
    t.equal(evictsPods("--feature-gates=SeparateTaintEvictionController=false"), true, "a part of another controller");
    t.throws(() => options("--feature-gates=NoSuchGate=true"), { message: /unknown feature gate/ });
    t.match(invoke("--feature-gates=SidecarContainers=true").warnings.join(), /has no effect/);
  },
  controllers: async (t) => {
    t.same(options("--controllers=deployment-controller,-job").controllers, ["deployment"]);
    const all = options("--controllers=*,bootstrapsigner,-cronjob-controller").controllers;
    t.ok(all.includes("bootstrapsigner") && all.includes("job"));
    t.notOk(all.includes("cronjob") || all.includes("tokencleaner") || all.includes("scheduler"));
    t.throws(() => options("--controllers=replicas"), { message: /there is no controller "replicas"/ });
  },
  "use-service-account-credentials": async (t) => {
    t.equal(options("--use-service-account-credentials").usesAccounts, true);
  },
  "root-ca-file": async (t) => {
    t.equal(options("--root-ca-file=/etc/svc/ca.crt").rootCaFile, "/etc/svc/ca.crt");
  },
  "service-account-private-key-file": async (t) => {
    t.equal(options("--service-account-private-key-file=/etc/svc/sa.key").accountKeyFile, "/etc/svc/sa.key");
  },
  "cluster-signing-cert-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.clients?.certFile, "/c");
    const both = ["--cluster-signing-kubelet-client-cert-file=/c", "--cluster-signing-kubelet-client-key-file=/k"];
    t.throws(() => options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k", ...both), {
      message: /exclude each other/,
    });
  },
  "cluster-signing-key-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.nodeServing?.keyFile, "/k");
  },
  "cluster-signing-duration": async (t) => {
    const files = ["--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k"];
    t.equal(options(...files, "--cluster-signing-duration=1h").signing?.lifetimeMs, 3_600_000);
  },
  ...signerEffects("cluster-signing-kube-apiserver-client", "clients"),
  ...signerEffects("cluster-signing-kubelet-client", "nodeClients"),
  ...signerEffects("cluster-signing-kubelet-serving", "nodeServing"),
  ...signerEffects("cluster-signing-legacy-unknown", "legacy"),
  "cidr-allocator-type": async (t) => {
    t.equal(invoke("--cidr-allocator-type=RangeAllocator").flags["cidr-allocator-type"], "RangeAllocator");
    t.throws(() => invoke("--cidr-allocator-type=CloudAllocator"), { message: /must be RangeAllocator/ });
  },
  "cloud-config": warns({ invoke }, "--cloud-config=/etc/cloud.conf"),
  "route-reconciliation-period": warns({ invoke }, "--route-reconciliation-period=1s"),
  "flex-volume-plugin-dir": warns({ invoke }, "--flex-volume-plugin-dir=/usr/libexec/drivers"),
  "cluster-name": warns({ invoke }, "--cluster-name=edge"),
  "allocate-node-cidrs": async (t) => {
    t.same(settings("--cluster-cidr=10.244.0.0/16", "--allocate-node-cidrs").clusterCidrs, ["10.244.0.0/16"]);
    t.same(settings("--cluster-cidr=10.244.0.0/16").clusterCidrs, []);
  },
  "cluster-cidr": async (t) => {
    const dual = settings("--cluster-cidr=10.244.0.0/16,fd00:244::/48", "--allocate-node-cidrs");
    t.same(dual.clusterCidrs, ["10.244.0.0/16", "fd00:244::/48"]);
    t.throws(() => settings("--cluster-cidr=10.0.0.0/16,10.1.0.0/16"), { message: /must be one CIDR/ });
  },
  "service-cluster-ip-range": async (t) => {
    t.same(settings("--service-cluster-ip-range=10.96.0.0/12").serviceCidrs, ["10.96.0.0/12"]);
  },
  "node-cidr-mask-size": async (t) => {
    const single = settings("--cluster-cidr=10.0.0.0/8", "--allocate-node-cidrs", "--node-cidr-mask-size=20");
    t.same(single.nodeCidrMaskSizes, { ipv4: 20, ipv6: 64 });
  },
  "node-cidr-mask-size-ipv4": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv4=22").nodeCidrMaskSizes?.ipv4, 22);
  },
  "node-cidr-mask-size-ipv6": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv6=80").nodeCidrMaskSizes?.ipv6, 80);
  },
  "pvclaimbinder-sync-period": async (t) => {
    t.equal(settings("--pvclaimbinder-sync-period=5s").claimBinderSyncPeriodMs, 5_000);
  },
  "disable-force-detach-on-timeout": async (t) => {
    t.equal(settings("--disable-force-detach-on-timeout").disableForceDetachOnTimeout, true);
  },
  "disable-attach-detach-reconcile-sync": warns({ invoke }, "--disable-attach-detach-reconcile-sync"),
  "enable-dynamic-provisioning": async (t) => {
    t.equal(settings("--enable-dynamic-provisioning=false").provisionsVolumes, false);
    t.equal(settings().provisionsVolumes, true);
  },
  "controller-start-interval": async (t) => {
    t.equal(settings("--controller-start-interval=2s").startIntervalMs, 2_000);
  },
  "external-cloud-volume-plugin": warns({ invoke }, "--external-cloud-volume-plugin=aws"),
  "enable-leader-migration": warns({ invoke }, "--enable-leader-migration"),
  "leader-migration-config": warns({ invoke }, "--leader-migration-config=/etc/svc/migration.yaml"),
  ...Object.fromEntries(
    Object.entries(concurrencyFlags).map(([name, controller]) => [
      name,
      async (t: Test) => {
        t.same(settings(`--${name}=37`).concurrentSyncs, { [controller]: 37 });
      },
    ]),
  ),
};

const objectEffects: Effects = {
  "node-monitor-grace-period": async (t) => {
    t.equal(settings("--node-monitor-grace-period=20s").nodeMonitorGracePeriodMs, 20_000);
  },
  "node-startup-grace-period": async (t) => {
    t.equal(settings("--node-startup-grace-period=20s").nodeStartupGracePeriodMs, 20_000);
  },
  "node-monitor-period": warns({ invoke }, "--node-monitor-period=2s"),
  "node-eviction-rate": async (t) => {
    t.equal(settings("--node-eviction-rate=0.5").evictions?.nodesPerSecond, 0.5);
  },
  "secondary-node-eviction-rate": async (t) => {
    t.equal(settings("--secondary-node-eviction-rate=0.5").evictions?.nodesPerSecondDisrupted, 0.5);
  },
  "unhealthy-zone-threshold": async (t) => {
    t.equal(settings("--unhealthy-zone-threshold=0.8").evictions?.disruptedShare, 0.8);
  },
  "large-cluster-size-threshold": async (t) => {
    t.equal(settings("--large-cluster-size-threshold=7").evictions?.largeZoneNodes, 7);
  },
  "terminated-pod-gc-threshold": async (t) => {
    t.equal(settings("--terminated-pod-gc-threshold=7").terminatedPodGcThreshold, 7);
  },
  "resource-quota-sync-period": async (t) => {
    t.equal(settings("--resource-quota-sync-period=1m").quotaSyncPeriodMs, 60_000);
  },
  "legacy-service-account-token-clean-up-period": async (t) => {
    t.equal(settings("--legacy-service-account-token-clean-up-period=24h").legacyTokenCleanUpPeriodMs, 86_400_000);
  },
  "enable-garbage-collector": async (t) => {
    t.notOk(options("--enable-garbage-collector=false").controllers.includes("garbage-collector"));
    t.ok(options().controllers.includes("garbage-collector"));
  },
  "namespace-sync-period": warns({ invoke }, "--namespace-sync-period=2s"),
  "min-resync-period": warns({ invoke }, "--min-resync-period=2s"),
  "attach-detach-reconcile-sync-period": warns({ invoke }, "--attach-detach-reconcile-sync-period=2s"),
  "cloud-provider": async (t) => {
    t.equal(invoke("--cloud-provider=external").flags["cloud-provider"], "external");
    t.throws(() => invoke("--cloud-provider=aws"), { message: /--cloud-provider="aws": must be .*external/ });
  },
  "configure-cloud-routes": warns({ invoke }, "--configure-cloud-routes=false"),
  "max-endpoints-per-slice": async (t) => {
    t.equal(settings("--max-endpoints-per-slice=5").endpoints?.perSlice, 5);
  },
  "mirroring-max-endpoints-per-subset": async (t) => {
    t.equal(settings("--mirroring-max-endpoints-per-subset=5").endpoints?.mirroredPerSubset, 5);
  },
  "endpoint-updates-batch-period": async (t) => {
    t.equal(settings("--endpoint-updates-batch-period=1s").endpoints?.endpointsBatchMs, 1_000);
  },
  "endpointslice-updates-batch-period": async (t) => {
    t.equal(settings("--endpointslice-updates-batch-period=1s").endpoints?.sliceBatchMs, 1_000);
  },
  "mirroring-endpointslice-updates-batch-period": async (t) => {
    const { endpoints } = settings("--mirroring-endpointslice-updates-batch-period=1s");
    t.equal(endpoints?.mirroringBatchMs, 1_000);
  },
  "horizontal-pod-autoscaler-sync-period": async (t) => {
    t.equal(settings("--horizontal-pod-autoscaler-sync-period=1s").autoscaler?.syncPeriodMs, 1_000);
  },
  "horizontal-pod-autoscaler-tolerance": async (t) => {
    t.equal(settings("--horizontal-pod-autoscaler-tolerance=0.3").autoscaler?.tolerance, 0.3);
  },
  "horizontal-pod-autoscaler-downscale-stabilization": async (t) => {
    const { autoscaler } = settings("--horizontal-pod-autoscaler-downscale-stabilization=1s");
    t.equal(autoscaler?.downscaleStabilizationMs, 1_000);
  },
  "horizontal-pod-autoscaler-cpu-initialization-period": async (t) => {
    const { autoscaler } = settings("--horizontal-pod-autoscaler-cpu-initialization-period=1s");
    t.equal(autoscaler?.cpuInitializationPeriodMs, 1_000);
  },
  "horizontal-pod-autoscaler-initial-readiness-delay": async (t) => {
    const { autoscaler } = settings("--horizontal-pod-autoscaler-initial-readiness-delay=1s");
    t.equal(autoscaler?.initialReadinessDelayMs, 1_000);
  },
};

export const controllerManagerEffects: Effects = {
  ...componentEffects({ word: "controller-manager", name: "kube-controller-manager", invoke, options }),
  ...controllerEffects,
  ...objectEffects,
};

const shows = (gate: string, read: (options: ControllerManagerOptions) => unknown, ...needed: readonly string[]) => {
  const optionsWith = (setting: string) => {
    const { flags, gates } = invoke("--controllers=*,-taint-eviction-controller", setting);
    return controllerManagerOptions(flags, gates);
  };
  return showsGate(optionsWith, gate, read, needed);
};

/** A gate that controllers receive; the effects of the API server's gates show what they do with it. */
const reachesControllers = (gate: string) => shows(gate, ({ features }) => features.has(gate));

export const controllerManagerGateEffects: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  AllAlpha: shows("AllAlpha", ({ features }) => features.has("MaxUnavailableStatefulSet")),
  AllBeta: shows("AllBeta", ({ features }) => features.has("PodDeletionCost")),
  ClientsAllowCBOR: shows("ClientsAllowCBOR", ({ cbor }) => cbor !== undefined),
  ClientsPreferCBOR: shows("ClientsPreferCBOR", ({ cbor }) => cbor === "prefer", "ClientsAllowCBOR=true"),
  SeparateTaintEvictionController: shows(
    "SeparateTaintEvictionController",
    ({ controllerOptions }) => controllerOptions.evictsPods !== true,
  ),
  WatchListClient: shows("WatchListClient", ({ streamsLists }) => streamsLists),
  ...Object.fromEntries(
    [
      "APIServerIdentity",
      "DRAAdminAccess",
      "DRADeviceTaints",
      "DRAPrioritizedList",
      "DeploymentReplicaSetTerminatingReplicas",
      "DynamicResourceAllocation",
      "MaxUnavailableStatefulSet",
      "MultiCIDRServiceAllocator",
      "OrderedNamespaceDeletion",
      "PodDeletionCost",
      "PreferSameTrafficDistribution",
      "StorageVersionAPI",
      "StorageVersionMigrator",
    ].map((gate) => [gate, reachesControllers(gate)]),
  ),
};
