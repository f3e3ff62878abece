/** Every flag of `svc controller-manager`, in the order of its help. */
import {
  connectionFlags,
  leaderElectionFlags,
  loggingFlags,
  metricsFlags,
  otherFlags,
  servingFlags,
  validateLeaderElection,
} from "../component/flags.ts";
import { type Flag, flag, section } from "../flags/flag.ts";
import { controllerManagerGates } from "../flags/gate-tables/controller-manager.ts";
import { validateLogging } from "../flags/log-options.ts";
import type { Program } from "../flags/program.ts";
import { duration } from "../flags/types/duration.ts";
import { gateSettings } from "../flags/types/gate-settings.ts";
import { strings } from "../flags/types/list.ts";
import { cidrs } from "../flags/types/network.ts";
import { float, int32 } from "../flags/types/number.ts";
import { bool, directory, file, oneOf, oneOfOrNone, text } from "../flags/types/text.ts";
import { selectControllers } from "./controller-names.ts";

const workers = int32({ min: 1 });

/** Controllers, by the flag that sets how many objects they sync at the same time. */
export const concurrencyFlags = {
  "concurrent-cron-job-syncs": "cronjob",
  "concurrent-daemonset-syncs": "daemonset",
  "concurrent-deployment-syncs": "deployment",
  "concurrent-endpoint-syncs": "endpoint",
  "concurrent-ephemeralvolume-syncs": "ephemeral-volume",
  "concurrent-gc-syncs": "garbage-collector",
  "concurrent-horizontal-pod-autoscaler-syncs": "horizontalpodautoscaling",
  "concurrent-job-syncs": "job",
  "concurrent-namespace-syncs": "namespace",
  "concurrent-rc-syncs": "replicationcontroller",
  "concurrent-replicaset-syncs": "replicaset",
  "concurrent-resource-quota-syncs": "resourcequota",
  "concurrent-service-endpoint-syncs": "endpointslice",
  "concurrent-service-syncs": "service",
  "concurrent-serviceaccount-token-syncs": "serviceaccount-token",
  "concurrent-statefulset-syncs": "statefulset",
  "concurrent-ttl-after-finished-syncs": "ttl-after-finished",
  "concurrent-validating-admission-policy-status-syncs": "validatingadmissionpolicy-status-controller",
  "mirroring-concurrent-service-endpoint-syncs": "endpointslicemirroring",
} as const;

const concurrency = section("Concurrency", {
  "concurrent-cron-job-syncs": flag(workers, 5, "CronJobs that are synced at the same time."),
  "concurrent-daemonset-syncs": flag(workers, 2, "DaemonSets that are synced at the same time."),
  "concurrent-deployment-syncs": flag(workers, 5, "Deployments that are synced at the same time."),
  "concurrent-endpoint-syncs": flag(workers, 5, "Endpoints that are synced at the same time."),
  "concurrent-ephemeralvolume-syncs": flag(workers, 5, "Pods with ephemeral volumes that are synced at the same time."),
  "concurrent-gc-syncs": flag(workers, 20, "Objects that the garbage collector processes at the same time."),
  "concurrent-horizontal-pod-autoscaler-syncs": flag(workers, 5, "Autoscalers that are synced at the same time."),
  "concurrent-job-syncs": flag(workers, 5, "Jobs that are synced at the same time."),
  "concurrent-namespace-syncs": flag(workers, 10, "Namespaces that are finalized at the same time."),
  "concurrent-rc-syncs": flag(workers, 5, "ReplicationControllers that are synced at the same time."),
  "concurrent-replicaset-syncs": flag(workers, 5, "ReplicaSets that are synced at the same time."),
  "concurrent-resource-quota-syncs": flag(workers, 5, "ResourceQuotas that are synced at the same time."),
  "concurrent-service-endpoint-syncs": flag(workers, 5, "Services whose EndpointSlices are synced at the same time."),
  "concurrent-service-syncs": flag(workers, 1, "Services of load balancers that are synced at the same time."),
  "concurrent-serviceaccount-token-syncs": flag(workers, 5, "Token secrets that are synced at the same time."),
  "concurrent-statefulset-syncs": flag(workers, 5, "StatefulSets that are synced at the same time."),
  "concurrent-ttl-after-finished-syncs": flag(workers, 5, "Finished Jobs that are deleted at the same time."),
  "concurrent-validating-admission-policy-status-syncs": flag(
    workers,
    5,
    "ValidatingAdmissionPolicies whose types are checked at the same time.",
  ),
  "mirroring-concurrent-service-endpoint-syncs": flag(workers, 5, "Endpoints that are mirrored at the same time."),
});

/** The CA of one signer, in place of that of all. */
function signerFlags<P extends string>(prefix: P, signed: string) {
  const [cert, key] = [`${prefix}-cert-file`, `${prefix}-key-file`] as const;
  return {
    [cert]: flag(file, "", `CA that signs approved ${signed}, without --cluster-signing-cert-file.`, {
      requires: [key],
    }),
    [key]: flag(file, "", "Private key of that CA.", { requires: [cert] }),
  } as Record<`${P}-cert-file` | `${P}-key-file`, Flag<string>>;
}

const controllerFlags = section("Controllers", {
  controllers: flag(
    strings({ sample: "*,-cronjob" }),
    ["*"],
    "Controllers to run, by the names of Kubernetes: * for all that are on by default, foo for one, -foo for all but " +
      "that. Off by default: bootstrapsigner, tokencleaner, and local-path-provisioner, which needs agents of svc.",
  ),
  "use-service-account-credentials": flag(
    bool,
    false,
    "Use a service account in kube-system for each controller, instead of the credentials of the kubeconfig file.",
  ),
  "root-ca-file": flag(
    file,
    "",
    "CA certificate that pods get in the ConfigMap kube-root-ca.crt and in token secrets.",
    {
      defaultNote: "that of the kubeconfig file",
    },
  ),
  "service-account-private-key-file": flag(file, "", "Private key that signs the tokens in secrets."),
  "cluster-signing-cert-file": flag(file, "", "CA that signs approved certificate signing requests.", {
    requires: ["cluster-signing-key-file"],
    excludes: ["cluster-signing-kube*", "cluster-signing-legacy*"],
  }),
  "cluster-signing-key-file": flag(file, "", "Private key of that CA.", { requires: ["cluster-signing-cert-file"] }),
  "cluster-signing-duration": flag(
    duration({ min: 0 }),
    31_536_000_000,
    "Maximum validity of signed certificates; requests may specify less.",
  ),
  ...signerFlags("cluster-signing-kube-apiserver-client", "client certificates"),
  ...signerFlags("cluster-signing-kubelet-client", "client certificates of nodes"),
  ...signerFlags("cluster-signing-kubelet-serving", "serving certificates of nodes"),
  ...signerFlags("cluster-signing-legacy-unknown", "requests of former API versions without a signer"),
  "controller-start-interval": flag(duration({ min: 0 }), 0, "Time between the starts of two controllers."),
  "cluster-name": flag(text, "kubernetes", "Name of the cluster.", {
    redundant: "only cloud providers use it, of which this build has none",
  }),
});

const WATCHED = "changes are watched";
const CLOUD = "this build has no cloud providers";

const nodeFlags = section("Nodes and pods", {
  "node-monitor-grace-period": flag(
    duration({ min: 1 }),
    50_000,
    "Time without a heartbeat after which a node is not ready.",
  ),
  "node-startup-grace-period": flag(
    duration({ min: 1 }),
    60_000,
    "Time without a heartbeat after which a node that never sent one is not ready.",
  ),
  "node-monitor-period": flag(duration({ min: 1 }), 5_000, "How often heartbeats are read.", { redundant: WATCHED }),
  "node-eviction-rate": flag(float({ min: 0 }), 0.1, "Nodes a second of a zone whose pods are evicted."),
  "secondary-node-eviction-rate": flag(
    float({ min: 0 }),
    0.01,
    "The same in a large zone in which many nodes are not ready; none in a small one.",
  ),
  "unhealthy-zone-threshold": flag(
    float({ min: 0, max: 1 }),
    0.55,
    "Share of nodes that are not ready in such a zone, at least three.",
  ),
  "large-cluster-size-threshold": flag(int32({ min: 0 }), 50, "A zone with more nodes is large."),
  "terminated-pod-gc-threshold": flag(int32({}), 12_500, "How many finished pods may stay; all if not positive."),
  "resource-quota-sync-period": flag(
    duration({ min: 1 }),
    300_000,
    "How often the usage of all quotas is calculated again.",
  ),
  "legacy-service-account-token-clean-up-period": flag(
    duration({ min: 1 }),
    31_536_000_000,
    "How long an unused token secret stays, and then an invalid one.",
  ),
  "enable-garbage-collector": flag(bool, true, "Delete the dependents of deleted objects."),
  "namespace-sync-period": flag(duration({ min: 1 }), 300_000, "How often namespaces are read.", {
    redundant: WATCHED,
  }),
  "min-resync-period": flag(duration({ min: 1 }), 43_200_000, "How often all objects are processed again.", {
    redundant: WATCHED,
  }),
});

const autoscalerFlags = section("Autoscaling", {
  "horizontal-pod-autoscaler-sync-period": flag(duration({ min: 1 }), 15_000, "How often metrics are read."),
  "horizontal-pod-autoscaler-tolerance": flag(
    float({ min: 0 }),
    0.1,
    "A usage that differs less from the target changes nothing.",
  ),
  "horizontal-pod-autoscaler-downscale-stabilization": flag(
    duration({ min: 0 }),
    300_000,
    "A scale down uses the highest recommendation of this time.",
  ),
  "horizontal-pod-autoscaler-cpu-initialization-period": flag(
    duration({ min: 0 }),
    300_000,
    "Time after the start of a pod in which its CPU usage may be ignored.",
  ),
  "horizontal-pod-autoscaler-initial-readiness-delay": flag(
    duration({ min: 0 }),
    30_000,
    "A pod that became unready within this time has never been ready.",
  ),
});

const endpointsFlags = section("Endpoints", {
  "max-endpoints-per-slice": flag(int32({ min: 1, max: 1000 }), 100, "Endpoints of an EndpointSlice, at most."),
  "mirroring-max-endpoints-per-subset": flag(
    int32({ min: 1, max: 1000 }),
    1000,
    "Addresses of a subset of Endpoints that are mirrored, at most.",
  ),
  "endpoint-updates-batch-period": flag(
    duration({ min: 0 }),
    0,
    "How long changes of pods are collected before Endpoints are written.",
  ),
  "endpointslice-updates-batch-period": flag(
    duration({ min: 0 }),
    0,
    "How long changes of pods are collected before EndpointSlices are written.",
  ),
  "mirroring-endpointslice-updates-batch-period": flag(
    duration({ min: 0 }),
    0,
    "How long changes of mirrored EndpointSlices are collected before they are restored.",
  ),
});

const cloudFlags = section("Clouds", {
  "cloud-provider": flag(
    oneOfOrNone("external"),
    "",
    "Cloud provider: none, or external, whose controllers run in a program of the provider.",
  ),
  "cloud-config": flag(file, "", "Configuration file of the cloud provider.", { redundant: CLOUD }),
  "external-cloud-volume-plugin": flag(text, "", "Cloud provider whose volumes are attached with an external one.", {
    redundant: CLOUD,
  }),
  "enable-leader-migration": flag(bool, false, "Move controllers to the program of a cloud provider.", {
    redundant: CLOUD,
  }),
  "leader-migration-config": flag(file, "", "Configuration file of that.", { redundant: CLOUD }),
  "route-reconciliation-period": flag(duration({ min: 1 }), 10_000, "How often routes of the cloud are read.", {
    redundant: CLOUD,
  }),
  "configure-cloud-routes": flag(bool, true, "Configure routes of the cloud.", { redundant: CLOUD }),
});

const networkFlags = section("Pod network", {
  "allocate-node-cidrs": flag(bool, false, "Give each node a block of --cluster-cidr for its pods.", {
    requires: ["cluster-cidr"],
  }),
  "cluster-cidr": flag(cidrs, [], "Range of pods' addresses, or one of each IP family; with --allocate-node-cidrs."),
  "cidr-allocator-type": flag(oneOf("RangeAllocator"), "RangeAllocator", "How the blocks are chosen."),
  "service-cluster-ip-range": flag(cidrs, [], "Range of services' addresses: no node gets a block of it."),
  "node-cidr-mask-size": flag(int32({ min: 0 }), 0, "Prefix length of the blocks; 0 means 24 for IPv4, 64 for IPv6.", {
    excludes: ["node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6"],
  }),
  "node-cidr-mask-size-ipv4": flag(int32({ min: 0 }), 0, "Prefix length of the IPv4 blocks; 0 means 24."),
  "node-cidr-mask-size-ipv6": flag(int32({ min: 0 }), 0, "Prefix length of the IPv6 blocks; 0 means 64."),
});

const volumeFlags = section("Volumes", {
  "pvclaimbinder-sync-period": flag(
    duration({ min: 1 }),
    15_000,
    "How often pending claims and volumes are synced again.",
  ),
  "disable-force-detach-on-timeout": flag(
    bool,
    false,
    "Never detach a volume in use from a node that is not ready; otherwise after six minutes.",
  ),
  "attach-detach-reconcile-sync-period": flag(duration({ min: 1 }), 60_000, "How often attached volumes are read.", {
    redundant: WATCHED,
  }),
  "flex-volume-plugin-dir": flag(directory, "", "Directory of drivers of flexVolumes.", {
    redundant: "nodes attach flexVolumes themselves",
  }),
  "disable-attach-detach-reconcile-sync": flag(bool, false, "Do not read periodically which volumes are attached.", {
    redundant: WATCHED,
  }),
  "enable-dynamic-provisioning": flag(
    bool,
    true,
    "Request volumes for claims from the provisioners of their classes; otherwise claims wait for volumes.",
  ),
});

export const controllerManagerFlags = {
  ...connectionFlags,
  ...section("API server", {
    "kube-api-qps": flag(
      float({}),
      20,
      "Requests a second to the API server of each controller, on average; no limit if not positive.",
    ),
    "kube-api-burst": flag(int32({ min: 0 }), 30, "Requests of each controller to the API server at once."),
  }),
  ...controllerFlags,
  ...nodeFlags,
  ...networkFlags,
  ...volumeFlags,
  ...autoscalerFlags,
  ...endpointsFlags,
  ...cloudFlags,
  ...concurrency,
  ...leaderElectionFlags("kube-controller-manager"),
  ...servingFlags(10257),
  ...metricsFlags,
  ...loggingFlags,
  ...section("Other", {
    "feature-gates": flag(gateSettings("Gate=true,..."), {}, "Enables and disables feature gates."),
  }),
  ...otherFlags,
};

export const controllerManagerProgram: Program<typeof controllerManagerFlags> = {
  name: "svc controller-manager",
  summary:
    "The controller manager runs the controllers of a cluster, which bring its objects to their desired state. It " +
    "works with any API server of Kubernetes.",
  flags: controllerManagerFlags,
  gates: controllerManagerGates,
  check: (flags) => {
    const { unknown } = selectControllers(flags.controllers);
    return [
      ...unknown.map((name) => `--controllers: there is no controller ${JSON.stringify(name)}`),
      ...validateLeaderElection(flags),
      ...validateLogging(flags),
    ];
  },
};
