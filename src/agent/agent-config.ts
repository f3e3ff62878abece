import type { ContentType } from "../client/api-client.ts";
import type { TlsOptions } from "../http/tls/options.ts";
import { KUBERNETES_VERSION } from "../std/version.ts";
import type { NodeCgroupSettings } from "./cgroups/node-cgroups.ts";
import type { RestartDelays } from "./pods/worker/restart-backoff.ts";

/** Everything the agent can be told, checked and with defaults applied; made from flags and file by `options.ts`. */
export interface AgentConfig {
  readonly nodeName: string;
  /** Directory for volumes, pod directories and the agent's own records. */
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly certDir: string;
  /** Path of the connection file; undefined and no transport: the agent has no source of pods. */
  readonly svcconfig: string | undefined;
  readonly certificates: CertificatesConfig;
  /** Requests to the API server, without events and the node's own heartbeat. */
  readonly api: ApiConfig;
  readonly runtime: RuntimeConfig;
  readonly node: NodeConfig;
  readonly sources: SourcesConfig;
  readonly pods: PodsConfig;
  readonly volumes: VolumesConfig;
  readonly server: ServerConfig;
  /** Pairs that the effective configuration prints at `/configz`; never secrets. */
  readonly configz: unknown;
}

/** Where the agent's certificates come from. */
export interface CertificatesConfig {
  /** Connection file whose credentials ask for the first client certificate. */
  readonly bootstrapSvcconfig: string | undefined;
  /** Ask for new client certificates before they run out. */
  readonly rotateClient: boolean;
  /** Ask for serving certificates, and for new ones. */
  readonly rotateServing: boolean;
}

export interface ApiConfig {
  /** Requests a second, on average. */
  readonly qps: number;
  readonly burst: number;
  /** Of the objects that are sent. */
  readonly contentType: ContentType;
}

export interface RuntimeConfig extends NodeCgroupSettings {
  /** `unix:///run/containerd/containerd.sock` */
  readonly endpoint: string;
  readonly imageEndpoint: string;
  readonly requestTimeoutMs: number;
  readonly serializeImagePulls: boolean;
  /** Pulls per second; 0 is unlimited. */
  readonly registryQps: number;
  readonly registryBurst: number;
  /** How many images are pulled at once where that is not one after the other; undefined: any number. */
  readonly parallelImagePulls: number | undefined;
  /** Undefined: there are none. */
  readonly credentialProviders: CredentialProvidersConfig | undefined;
  /** `{ memory: "50%" }` */
  readonly qosReserved: Readonly<Record<string, string>>;
  /** Processes that a pod may have; without limit when not positive. */
  readonly podMaxPids: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuCfsQuotaPeriodMs: number;
  readonly seccompDefault: boolean;
  readonly failSwapOn: boolean;
  readonly failCgroupV1: boolean;
  /** Refuses a machine whose kernel is set otherwise than pods need. */
  readonly protectKernelDefaults: boolean;
  /** Whether only the process that ran out of memory is killed; undefined: as the machine's cgroups have it. */
  readonly singleProcessOomKill: boolean | undefined;
  /** The kernel's willingness to kill the agent itself, -1000 to 1000; undefined leaves it as it is. */
  readonly oomScoreAdj: number | undefined;
  /** Files that the agent may have open; undefined leaves that as it is. */
  readonly maxOpenFiles: number | undefined;
}

/** Plugins that know credentials of registries. */
export interface CredentialProvidersConfig {
  /** A file, or a directory of files. */
  readonly config: string;
  /** Where their programs lie. */
  readonly binDir: string;
  /** Whether they may be given tokens of the pods' service accounts. */
  readonly tokens: boolean;
}

export interface NodeConfig {
  readonly register: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
  readonly unschedulable: boolean;
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
  /** Addresses of pods, until the node's object says which; empty for none. */
  readonly podCidr: string;
  /** Whether chains that others look for are kept in the kernel's packet filter. */
  readonly iptablesChains: boolean;
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
  /** How often the sizes of logs are looked at. */
  readonly logMonitorMs: number;
  /** Logs that are put aside at the same time. */
  readonly logWorkers: number;
  /** Names, or beginnings of names that end in `*`. */
  readonly allowedUnsafeSysctls: readonly string[];
  /** Whether pods that put more on disk than they may are ended. */
  readonly localStorageIsolation: boolean;
  /** Ended runs that are kept of a container; negative keeps all. */
  readonly deadRunsMax: number;
  /** Those that ended more recently are kept besides. */
  readonly deadRunMinAgeMs: number;
  readonly restartDelays: RestartDelays;
  /** How the agent learns that ConfigMaps and Secrets changed: by watching, by asking at each look, or now and then. */
  readonly changeDetection: "Watch" | "Get" | "Cache";
  readonly eventQps: number;
  readonly eventBurst: number;
  /** Grace granted to pods when the agent is asked to stop them, in seconds at most. */
  readonly shutdownGraceSeconds: number;
  /** Whether containers may say by which signal they are stopped. */
  readonly stopSignals: boolean;
  /** Ids of a pod with a user namespace of its own; undefined: no pod may have one. */
  readonly idsPerPod: number | undefined;
}

export interface VolumesConfig {
  /** Whether a controller attaches and detaches; otherwise the agent does. */
  readonly controllerAttach: boolean;
  /** Flex drivers. */
  readonly pluginDir: string;
  /** Whether pods may mount images. */
  readonly images: boolean;
}

export interface ServerConfig {
  readonly enabled: boolean;
  readonly address: string;
  /** 0 asks the system for a free port. */
  readonly port: number;
  /** 0 disables. */
  readonly readOnlyPort: number;
  readonly healthzAddress: string;
  /** 0 disables. */
  readonly healthzPort: number;
  readonly tlsCertFile: string;
  readonly tlsKeyFile: string;
  /** TLSv1.2 when undefined. */
  readonly tlsMinVersion: TlsOptions["minVersion"];
  /** OpenSSL's names, separated by colons; Node's default when undefined. */
  readonly tlsCiphers: string | undefined;
  readonly clientCaFile: string;
  readonly anonymousAuth: boolean;
  /** How long the API server's word is good for whose bearer tokens are; undefined: it is not asked. */
  readonly tokenCacheMs: number | undefined;
  readonly authorization: AuthorizationConfig;
  readonly debuggingHandlers: boolean;
}

/** Who may use the agent's server. */
export interface AuthorizationConfig {
  /** `Webhook`: whom the API server allows. */
  readonly mode: "AlwaysAllow" | "Webhook";
  /** How long the API server's word is good when it allows, and when it does not. */
  readonly allowedMs: number;
  readonly refusedMs: number;
  /** Whether less than `nodes/proxy` is enough for what only tells. */
  readonly fineGrained: boolean;
}

/** The version the agent reports as `kubeletVersion`. */
export const agentVersion = KUBERNETES_VERSION;
