import type { CborUse, ContentType } from "../client/api-client.ts";
import type { ForwardRule } from "../dns/forward/forward-rule.ts";
import type { FeatureState } from "../flags/build-metrics.ts";
import type { TlsOptions } from "../http/tls/options.ts";
import type { NetworkNames } from "../pod-network/network-names.ts";
import type { TracingConfig } from "../tracing/tracer.ts";
import type { NodeCgroupSettings } from "./cgroups/node-cgroups.ts";
import type { ImageLimits } from "./garbage-collection/image-collector.ts";
import type { PullVerificationConfig } from "./images/pull-records/verification-policy.ts";
import type { ShutdownGroup } from "./node/shutdown/priority-groups.ts";
import type { RestartDelays } from "./pods/worker/restart-backoff.ts";
import type { ResourceManagersConfig } from "./resource-managers/config.ts";
import type { SeLinuxMounts } from "./volumes/mount/selinux.ts";

/** The agent's configuration, validated and with defaults; made from flags and file by `options.ts`. */
export interface AgentConfig {
  readonly nodeName: string;
  /** Reported as `kubeletVersion`: `v1.33.0`, or that of `--version=v…`. */
  readonly version: string;
  /** Directory for volumes, pod directories and the agent's own records. */
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly certDir: string;
  /** Path of the connection file; undefined and no transport: the agent has no API server. */
  readonly svcconfig: string | undefined;
  readonly certificates: CertificatesConfig;
  /** Requests to the API server, without events and the node's own heartbeat. */
  readonly api: ApiConfig;
  readonly runtime: RuntimeConfig;
  readonly resources: ResourceManagersConfig;
  readonly node: NodeConfig;
  readonly sources: SourcesConfig;
  readonly pods: PodsConfig;
  readonly garbage: GarbageConfig;
  readonly eviction: EvictionConfig;
  /** Undefined: pods are not ended when the machine shuts down. */
  readonly shutdown: ShutdownConfig | undefined;
  /** Undefined: the agent does not serve the cluster's DNS. */
  readonly dns: DnsConfig | undefined;
  /** Undefined: the agent runs no service proxy. */
  readonly proxy: ProxyConfig | undefined;
  readonly podNetwork: PodNetworkConfig;
  readonly networkPolicy: NetworkPolicyConfig;
  readonly volumes: VolumesConfig;
  readonly server: ServerConfig;
  readonly observability: ObservabilityConfig;
  /** Undefined: no traces are exported. */
  readonly tracing: TracingConfig | undefined;
  /** Pairs that the effective configuration prints at `/configz`; never secrets. */
  readonly configz: object;
}

/** What the agent shows of itself. */
export interface ObservabilityConfig {
  readonly features: readonly FeatureState[];
  /** Whether deprecated metrics that this release hides are shown. */
  readonly hiddenMetrics: boolean;
  /** At `/flagz`: every flag's value as on the command line. Undefined: the page is not served. */
  readonly flags: Readonly<Record<string, string>> | undefined;
  /** Whether `/statusz` is served. */
  readonly statusPage: boolean;
  /** Whether the service manager is notified that the agent is healthy. */
  readonly watchdog: boolean;
  /** Whether figures of containers include the pressure stall information of the kernel. */
  readonly readsPressure: boolean;
}

export interface ProxyConfig {
  /** Ranges of the addresses of all pods. */
  readonly clusterCidrs: readonly string[];
  /** Besides those of the cluster's ServiceCIDRs. */
  readonly serviceCidrs: readonly string[];
  /** The name of the tables of nftables. */
  readonly table: string;
  /** Whether the agent starts on a machine without nft, with a warning. */
  readonly isOptional: boolean;
}

export interface NetworkPolicyConfig {
  /** Whether the agent enforces network policies. */
  readonly isEnabled: boolean;
  /** The name of the tables of nftables. */
  readonly table: string;
  /** Whether the agent starts on a machine without nft. */
  readonly isOptional: boolean;
}

/** The network of the pods, which the agent configures unless the mode is `none`. */
export interface PodNetworkConfig {
  /** How packets reach pods of other nodes. */
  readonly mode: "auto" | "vxlan" | "none";
  /** Ranges of the addresses of all pods. */
  readonly clusterCidrs: readonly string[];
  readonly names: NetworkNames;
  /** Whether a pod reaches itself through its service: the ports of the bridge are in hairpin mode. */
  readonly hairpin: boolean;
  /** Directory of the CNI configuration; undefined: the runtime's. */
  readonly confDir: string | undefined;
  /** Directory of the addresses of pods; a reboot empties it. */
  readonly leaseDir: string;
  /** Whether the agent starts on a machine without iproute2. */
  readonly isOptional: boolean;
}

/** Where the agent's certificates come from. */
export interface CertificatesConfig {
  /** Connection file with the credentials that request the first client certificate. */
  readonly bootstrapSvcconfig: string | undefined;
  /** Request a new client certificate before the current one expires. */
  readonly rotateClient: boolean;
  /** Request serving certificates from the cluster, and renew them. */
  readonly rotateServing: boolean;
  /** Whether a node without addresses requests one for its DNS names. */
  readonly servingWithoutAddresses?: boolean | undefined;
}

export interface ApiConfig {
  /** Requests a second, on average. */
  readonly qps: number;
  readonly burst: number;
  /** Of the objects that are sent. */
  readonly contentType: ContentType;
  /** Whether informers get their first objects with their watch. */
  readonly streamsLists: boolean;
  /** The gates ClientsAllowCBOR and ClientsPreferCBOR. */
  readonly cbor: CborUse | undefined;
}

export interface RuntimeConfig extends NodeCgroupSettings {
  /** `unix:///run/containerd/containerd.sock` */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  /** Whether the cgroup driver that the runtime reports replaces the configured one. */
  readonly adoptsCgroupDriver: boolean;
  /** Whether requests for images name the runtime handler of the pod. */
  readonly namesRuntimeHandler: boolean;
  readonly requestTimeoutMs: number;
  readonly serializeImagePulls: boolean;
  /** Pulls per second; 0 is unlimited. */
  readonly registryQps: number;
  readonly registryBurst: number;
  /** How many images are pulled at once when pulls are not serialized; undefined: no limit. */
  readonly parallelImagePulls: number | undefined;
  /** Undefined: there are none. */
  readonly credentialProviders: CredentialProvidersConfig | undefined;
  /** Which present images a pod needs credentials for; undefined: none, and pulls are not recorded. */
  readonly pullVerification: PullVerificationConfig | undefined;
  /** The cgroup of the container runtime; empty when it is not known. */
  readonly runtimeCgroup: string;
  /** `{ memory: "50%" }` */
  readonly qosReserved: Readonly<Record<string, string>>;
  /** Processes of a pod; no limit when not positive. */
  readonly podMaxPids: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsQuotaPeriodMs: number;
  readonly seccompDefault: boolean;
  readonly failSwapOn: boolean;
  readonly failCgroupV1: boolean;
  /** Do not start when kernel parameters differ from what pods need. */
  readonly protectKernelDefaults: boolean;
  /** Whether the OOM killer kills single processes; undefined: the default of the machine's cgroup version. */
  readonly singleProcessOomKill: boolean | undefined;
  /** Whether Burstable pods may use a share of the node's swap; requires cgroup v2. */
  readonly limitedSwap: boolean;
  /** See `MemoryQos`; undefined: off. */
  readonly memoryThrottlingFactor: number | undefined;
  /** The gate PodAndContainerStatsFromCRI. */
  readonly measuresPods: boolean;
  /** oom_score_adj of the agent, -1000 to 1000; undefined leaves it unchanged. */
  readonly oomScoreAdj: number | undefined;
  /** Limit of open files of the agent; undefined leaves it unchanged. */
  readonly maxOpenFiles: number | undefined;
}

/** Plugins that return credentials of registries. */
export interface CredentialProvidersConfig {
  /** A file, or a directory of files. */
  readonly config: string;
  /** Directory of their programs. */
  readonly binDir: string;
  /** Whether they may receive tokens of the pods' service accounts. */
  readonly tokens: boolean;
}

export interface NodeConfig {
  readonly register: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
  readonly unschedulable: boolean;
  /** Whether the node is read before it is created, so that most starts do not try to create it. */
  readonly readsNodeFirst: boolean;
  /** Whether the node reports a version of its service proxy. */
  readonly reportsProxyVersion: boolean;
  /** Addresses to report; empty finds the default route's. */
  readonly ips: readonly string[];
  readonly providerId: string;
  readonly statusUpdateMs: number;
  readonly statusReportMs: number;
  readonly leaseDurationSeconds: number;
  readonly statusMaxImages: number;
  readonly maxPods: number;
  readonly podsPerCore: number;
  /** Reserved for the system and for the service, summed: resource name → quantity. */
  readonly reserved: Readonly<Record<string, string>>;
  /** Hard thresholds: `{ "memory.available": "100Mi", "nodefs.available": "10%" }`. */
  readonly evictionHard: Readonly<Record<string, string>>;
  /** Whether the allocatable resources of the node include what the hard thresholds keep free. */
  readonly allocatableIgnoresEviction: boolean;
  /** Addresses of pods, until the Node object has them; empty for none. */
  readonly podCidr: string;
  /** Whether an external cloud provider initializes the node and sets its addresses. */
  readonly externalCloud: boolean;
  /** Whether the agent maintains kubelet's iptables chains. */
  readonly iptablesChains: boolean;
}

/** Limits of the images and exited containers on the node. */
export interface GarbageConfig {
  readonly images: ImageLimits;
  /** Name of the image of sandboxes, which is never removed. */
  readonly sandboxImage: string;
  /** Exited containers kept on the node; negative keeps all. */
  readonly deadContainersMax: number;
}

/** How pods end when the machine shuts down. */
export interface ShutdownConfig {
  /** By ascending priority; empty: the agent does not handle shutdowns. */
  readonly groups: readonly ShutdownGroup[];
  /** Whether the times of the last shutdown are kept and shown. */
  readonly recordsTimes: boolean;
}

/** When the node evicts pods. Thresholds are quantities or percentages, by signal. */
export interface EvictionConfig {
  readonly hard: Readonly<Record<string, string>>;
  readonly soft: Readonly<Record<string, string>>;
  /** By signal; each soft threshold has one. */
  readonly softGraceMs: Readonly<Record<string, number>>;
  readonly minimumReclaim: Readonly<Record<string, string>>;
  /** Longest grace period of a pod for a soft threshold, in seconds; negative: the pod's own. */
  readonly maxPodGraceSeconds: number;
  /** Whether the former applies also to pods with a shorter grace period of their own. */
  readonly overwritesPodGrace: boolean;
  /** Whether images and the containers' writable layers may be on two file systems. */
  readonly splitDisks: boolean;
  /** How long a pressure condition remains true after its last threshold was met. */
  readonly transitionMs: number;
  /** Observes memory at finer intervals. */
  readonly kernelMemcgNotification: boolean;
  /** Whether the cgroup of all pods has a limit, at which pods are evicted as well. */
  readonly enforcesPods: boolean;
}

/** Sources of pods besides the API server. */
export interface SourcesConfig {
  /** A directory of manifests, or one; empty for none. */
  readonly manifestPath: string;
  readonly fileCheckMs: number;
  /** Empty for none. */
  readonly manifestUrl: string;
  readonly manifestUrlHeaders: Readonly<Record<string, readonly string[]>>;
  readonly httpCheckMs: number;
  /** Ends once the pods of the manifests have started. */
  readonly runOnce: boolean;
}

export interface PodsConfig {
  readonly syncMs: number;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  readonly resolvConf: string;
  readonly logMaxFiles: number;
  readonly logMaxBytes: number;
  /** Interval of log size checks. */
  readonly logMonitorMs: number;
  /** Logs rotated at the same time. */
  readonly logWorkers: number;
  /** Names, or prefixes that end in `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Whether pods that exceed their limit of ephemeral storage are evicted. */
  readonly localStorageIsolation: boolean;
  /** Exited containers kept for each container of a pod; negative keeps all. */
  readonly deadRunsMax: number;
  /** Containers that exited more recently are kept as well. */
  readonly deadRunMinAgeMs: number;
  readonly restartDelays: RestartDelays;
  /** How ConfigMaps and Secrets are read: watched, read each time, or cached for a while. */
  readonly changeDetection: "Watch" | "Get" | "Cache";
  readonly eventQps: number;
  readonly eventBurst: number;
  /** Longest termination grace period when the agent stops all pods, in seconds. */
  readonly shutdownGraceSeconds: number;
  /** Whether containers may set their stop signal. */
  readonly stopSignals: boolean;
  /** Whether pods may have resources for the pod as a whole. */
  readonly podLevelResources: boolean;
  /** Whether changed resources of a container are applied while it runs. */
  readonly inPlaceResize: boolean;
  /** Whether pods have the condition PodReadyToStartContainers. */
  readonly readyToStartCondition: boolean;
  /** Whether the status of pods has the generation that it is about. */
  readonly observedGeneration: boolean;
  /** Whether an exec probe fails at its timeout; its result is unknown otherwise. */
  readonly execProbeTimeout: boolean;
  /** Whether pods may exclude the groups that their images define. */
  readonly supplementalGroupsPolicy: boolean;
  /** Number of IDs of a pod with its own user namespace; undefined: no pod may have one. */
  readonly idsPerPod: number | undefined;
}

/** The DNS server at the addresses of `clusterDns`, for `clusterDomain`. */
export interface DnsConfig {
  /** Empty: other names are forwarded to the servers in `resolvConf`. */
  readonly forward: readonly ForwardRule[];
}

export interface VolumesConfig {
  /** Whether a controller attaches and detaches volumes; otherwise the agent does. */
  readonly controllerAttach: boolean;
  /** Flex drivers. */
  readonly pluginDir: string;
  /** Whether pods may mount images. */
  readonly images: boolean;
  /** Whether pods may have volumes that git clones. */
  readonly gitRepositories: boolean;
  /** The gate CSIVolumeHealth. */
  readonly health: boolean;
  /** Whether project quotas count what emptyDirs of pods in user namespaces use. */
  readonly quotaMonitoring: boolean;
  /** Which volumes are mounted with a SELinux context. */
  readonly seLinuxMounts: SeLinuxMounts;
  /** How long the measured size of a volume is reported; undefined: volumes are not measured. */
  readonly statsMs: number | undefined;
}

export interface ServerConfig {
  readonly enabled: boolean;
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  /** 0 disables. */
  readonly readOnlyPort: number;
  readonly healthzAddress: string;
  /** 0 disables. */
  readonly healthzPort: number;
  /** Whether changed files of the serving certificate are used without a restart. */
  readonly reloadsCertificate: boolean;
  readonly tlsCertFile: string;
  readonly tlsKeyFile: string;
  /** TLSv1.2 when undefined. */
  readonly tlsMinVersion: TlsOptions["minVersion"];
  /** OpenSSL's names, separated by colons; Node's default when undefined. */
  readonly tlsCiphers: string | undefined;
  readonly clientCaFile: string;
  readonly anonymousAuth: boolean;
  /** How long a TokenReview is cached; undefined: bearer tokens are not accepted. */
  readonly tokenCacheMs: number | undefined;
  readonly authorization: AuthorizationConfig;
  readonly debuggingHandlers: boolean;
  /** Whether clients may select one stream of a container's log. */
  readonly splitLogs: boolean;
  /** With the debugging handlers: whether the files of `/var/log` are served. */
  readonly nodeLogs: boolean;
  /** With `nodeLogs`: whether clients may query the logs of services. */
  readonly nodeLogQuery: boolean;
  /** With the debugging handlers: whether clients may have the runtime write the state of containers to files. */
  readonly checkpoints: boolean;
  /** With the debugging handlers: whether profiles are served. */
  readonly profiling: boolean;
  /** With `profiling`: whether the delays of the event loop are measured and served. */
  readonly contentionProfiling: boolean;
  /** With the debugging handlers: whether clients may set the verbosity of the log. */
  readonly debugFlags: boolean;
  /** A stream without data in either direction ends after this; 0: never. */
  readonly streamIdleMs: number;
  /** Whether the agent opens a connection to the API server, by which that connects to the agent's server. */
  readonly tunnel: boolean;
}

/** Authorization of requests to the agent's server. */
export interface AuthorizationConfig {
  /** `Webhook`: by SubjectAccessReviews of the API server. */
  readonly mode: "AlwaysAllow" | "Webhook";
  /** How long a SubjectAccessReview is cached when it allows, and when it does not. */
  readonly allowedMs: number;
  readonly deniedMs: number;
  /** Whether read-only endpoints check finer subresources than `nodes/proxy`. */
  readonly fineGrained: boolean;
}
