import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { pairs } from "../../flags/types/map.ts";
import { endpoint } from "../../flags/types/network.ts";
import { cgroupPath, cpuSet, reservedMemory } from "../../flags/types/node.ts";
import { int32 } from "../../flags/types/number.ts";
import { bytes } from "../../flags/types/quantity.ts";
import { bool, directory, file, oneOf, text } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const runtimeFlags = section("Container runtime, images and cgroups", {
  "container-runtime-endpoint": flag(
    endpoint,
    "unix:///run/containerd/containerd.sock",
    "Remote runtime endpoint. unix://<path> on Linux; npipe://<pipe> and tcp:// on Windows.",
    { config: "containerRuntimeEndpoint", deprecated: inFile },
  ),
  "image-service-endpoint": flag(endpoint, "", "Remote image service endpoint.", {
    config: "imageServiceEndpoint",
    defaultNote: "that of --container-runtime-endpoint",
    deprecated: inFile,
  }),
  "runtime-request-timeout": flag(
    duration({ min: 1 }),
    120_000,
    "Timeout for all runtime requests except pull, logs, exec and attach; on expiry the request is " +
      "cancelled, an error is raised and the request is retried later.",
    { config: "runtimeRequestTimeout", deprecated: inFile },
  ),
  "pod-infra-container-image": flag(
    text,
    "registry.k8s.io/pause:3.10",
    "Image that image garbage collection leaves alone.",
    {
      deprecated: "it will be removed in 1.27; the container runtime configures its own pause image.",
    },
  ),
  "serialize-image-pulls": flag(bool, true, "Pull images one at a time.", {
    config: "serializeImagePulls",
    deprecated: inFile,
  }),
  "registry-qps": flag(int32({ min: 0 }), 5, "Pull rate limit; 0 means unlimited.", {
    config: "registryPullQPS",
    deprecated: inFile,
  }),
  "registry-burst": flag(int32({ min: 0 }), 10, "Pull burst; used only if --registry-qps > 0.", {
    config: "registryBurst",
    deprecated: inFile,
  }),
  "image-credential-provider-bin-dir": flag(directory, "", "Directory of credential provider plugin binaries.", {
    requires: ["image-credential-provider-config"],
  }),
  "image-credential-provider-config": flag(
    file,
    "",
    "Credential provider plugin config file, or a directory of such files, which are put together.",
    { requires: ["image-credential-provider-bin-dir"] },
  ),
  "image-gc-high-threshold": flag(
    int32({ min: 0, max: 100 }),
    85,
    "Disk-usage percent above which image GC always runs; range 0-100; 100 disables image GC.",
    { config: "imageGCHighThresholdPercent", deprecated: inFile },
  ),
  "image-gc-low-threshold": flag(
    int32({ min: 0, max: 100 }),
    80,
    "Disk-usage percent below which image GC never runs and down to which it collects; range 0-100; must not " +
      "exceed the high threshold.",
    { config: "imageGCLowThresholdPercent", deprecated: inFile },
  ),
  "minimum-image-ttl-duration": flag(duration({ min: 0 }), 120_000, "Minimum age of an unused image before GC.", {
    config: "imageMinimumGCAge",
    deprecated: inFile,
  }),
  "minimum-container-ttl-duration": flag(
    duration({ min: 0 }),
    0,
    "Age of a terminated container below which it is kept.",
    { deprecated: "use --eviction-hard or --eviction-soft instead." },
  ),
  "maximum-dead-containers": flag(
    int32(),
    -1,
    "Terminated containers kept on the node in all; negative means no limit.",
    { deprecated: "use --eviction-hard or --eviction-soft instead." },
  ),
  "maximum-dead-containers-per-container": flag(int32(), 1, "Terminated instances kept per container.", {
    deprecated: "use --eviction-hard or --eviction-soft instead.",
  }),
  "cgroup-driver": flag(oneOf("cgroupfs", "systemd"), "cgroupfs", "cgroupfs or systemd.", {
    config: "cgroupDriver",
    deprecated: inFile,
  }),
  "cgroup-root": flag(text, "", "Root cgroup for pods; empty means runtime default; best effort.", {
    config: "cgroupRoot",
    deprecated: inFile,
  }),
  "cgroups-per-qos": flag(bool, true, "Create the QoS cgroup hierarchy.", {
    config: "cgroupsPerQOS",
    deprecated: inFile,
  }),
  "svclet-cgroups": flag(cgroupPath, "", "Absolute cgroup name to create and run the agent in.", {
    config: "svcletCgroups",
    deprecated: inFile,
  }),
  "runtime-cgroups": flag(
    cgroupPath,
    "",
    "Absolute cgroup name of the container runtime, whose usage /stats/summary then has as system container runtime.",
  ),
  "system-cgroups": flag(
    cgroupPath,
    "",
    "Absolute cgroup name for non-kernel processes outside any cgroup under /; empty for none; rolling back " +
      "needs a reboot.",
    { config: "systemCgroups", deprecated: inFile },
  ),
  "cpu-cfs-quota": flag(bool, true, "Enforce CPU CFS quota for containers with CPU limits.", {
    config: "cpuCFSQuota",
    deprecated: inFile,
  }),
  "cpu-cfs-quota-period": flag(duration({ min: 1, max: 1000 }), 100, "CFS quota period.", {
    config: "cpuCFSQuotaPeriod",
    gate: "CustomCPUCFSQuotaPeriod",
    deprecated: inFile,
  }),
  "cpu-manager-policy": flag(oneOf("none", "static"), "none", "none or static.", {
    config: "cpuManagerPolicy",
    deprecated: inFile,
  }),
  "cpu-manager-policy-options": flag(pairs({ name: "string" }), {}, "key=value options.", {
    config: "cpuManagerPolicyOptions",
    deprecated: inFile,
  }),
  "cpu-manager-reconcile-period": flag(
    duration({ min: 0 }),
    10_000,
    "Alpha. CPU manager reconcile period; if unset uses the node status update frequency.",
    { config: "cpuManagerReconcilePeriod", deprecated: inFile },
  ),
  "memory-manager-policy": flag(oneOf("None", "Static"), "None", "None or Static.", {
    config: "memoryManagerPolicy",
    deprecated: inFile,
  }),
  "topology-manager-policy": flag(
    oneOf("none", "best-effort", "restricted", "single-numa-node"),
    "none",
    "none, best-effort, restricted, single-numa-node.",
    { config: "topologyManagerPolicy", deprecated: inFile },
  ),
  "topology-manager-policy-options": flag(pairs({ name: "string" }), {}, "key=value options.", {
    config: "topologyManagerPolicyOptions",
    deprecated: inFile,
  }),
  "topology-manager-scope": flag(oneOf("container", "pod"), "container", "container or pod.", {
    config: "topologyManagerScope",
    deprecated: inFile,
  }),
  "reserved-cpus": flag(
    cpuSet,
    "",
    "CPUs or ranges reserved for system and service use; supersedes CPU counts in the reserved flags.",
    { config: "reservedSystemCPUs", deprecated: inFile },
  ),
  "reserved-memory": flag(
    reservedMemory,
    [],
    "Per-NUMA-node memory reservations, e.g. <numa>:memory=<qty>,hugepages-1M=<qty>; repeatable; each type's " +
      "total must equal the sum of --svc-reserved, --system-reserved and the eviction threshold.",
    { config: "reservedMemory", deprecated: inFile },
  ),
  "enable-controller-attach-detach": flag(
    bool,
    true,
    "Attach/detach controller manages volume attachment; agent performs none.",
    { config: "enableControllerAttachDetach", deprecated: inFile },
  ),
  "volume-plugin-dir": flag(
    directory,
    "/usr/libexec/svc/svclet-plugins/volume/exec/",
    "Directory searched for third-party volume plugins.",
    { config: "volumePluginDir", deprecated: inFile },
  ),
  "volume-stats-agg-period": flag(
    duration(),
    60_000,
    "How long the measured disk usage of a volume is reported; negative disables measuring.",
    { config: "volumeStatsAggPeriod", deprecated: inFile },
  ),
  "experimental-mounter-path": flag(text, "mount", "Binary that mounts volumes.", {
    deprecated: "it will be removed in 1.24 or later; CSI drivers bring their own mounters.",
    redundant: "CSI drivers mount the volumes of network file systems",
  }),
  "local-storage-capacity-isolation": flag(bool, true, "Local ephemeral storage isolation.", {
    config: "localStorageCapacityIsolation",
    deprecated: inFile,
  }),
  "container-log-max-files": flag(int32({ min: 2 }), 5, "Beta. Log files kept per container; at least 2.", {
    config: "containerLogMaxFiles",
    deprecated: inFile,
  }),
  "container-log-max-size": flag(bytes("string", 1), 10 * 1024 * 1024, "Beta. Log file size before rotation.", {
    config: "containerLogMaxSize",
    deprecated: inFile,
  }),
});
