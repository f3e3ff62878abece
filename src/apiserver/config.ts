/** Everything the API server can be told, as checked values. Flags become this in `options.ts`. */
import type { TlsOptions } from "../http/tls.ts";
import type { PodAdmission } from "../registry/pod-admission.ts";
import type { StorageMediaType } from "../storage/codec.ts";

export interface ApiServerConfig {
  /** Empty, `0.0.0.0` and `::` stand for all interfaces. */
  readonly bindAddress: string;
  /** 0: any free port. */
  readonly securePort: number;
  readonly serving: ServingConfig;
  readonly authentication: AuthenticationConfig;
  /** `--authorization-mode`, in order: `Node`, `RBAC`, … */
  readonly authorizationModes: readonly string[];
  readonly pods: PodAdmission;
  readonly services: ServicesConfig;
  readonly storage: StorageConfig;
  readonly agents: AgentConnectionConfig;
  readonly limits: LimitsConfig;
  /** Answered by `/version`: `v1.33.0`. */
  readonly gitVersion: string;
  /** Serve the `svc.io` groups under their Kubernetes spelling as well. */
  readonly groupAliases: boolean;
  /** Whether somebody acts on the finalizers `orphan` and `foregroundDeletion`; without, they are not set. */
  readonly garbageCollector: boolean;
  /** The `WatchList` feature gate: watches may start with all there is, and a bookmark that says so. */
  readonly watchList: boolean;
  /** Names of `controllers/controllers.ts`; `*` for all. */
  readonly embeddedControllers: readonly string[];
  /** PEM of the authority that signed the serving certificate: what an embedded publisher tells pods to trust. */
  readonly clusterCa?: string | undefined;
}

export interface ServingConfig {
  /** PEM files. When undefined, a self-signed pair is kept in `certDir`. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly certDir: string;
  readonly minVersion: TlsOptions["minVersion"];
  /** OpenSSL's names, separated by colons. */
  readonly ciphers: string | undefined;
  /** 0: the listener's default. */
  readonly streamsPerConnection: number;
  /** Answer over HTTP/1.1 only. */
  readonly disableHttp2: boolean;
  /** Other processes may listen on the same port; the kernel spreads connections. */
  readonly sharePort: boolean;
  /** `max-age=31536000`, …; sent with every answer. */
  readonly strictTransportSecurity: readonly string[];
  /** Regular expressions for the origins of browsers' scripts that may read answers. */
  readonly corsOrigins: readonly string[];
  /** Where clients are told that the server is; undefined: where it listens. */
  readonly advertisedHost: string | undefined;
}

export interface AuthenticationConfig {
  /** PEM bundle; client certificates it signed are users. */
  readonly clientCaFile: string | undefined;
  /** `token,user,uid,"group,group"` lines. */
  readonly tokenFile: string | undefined;
  readonly anonymous: boolean;
}

export interface ServicesConfig {
  /** One block, or one of each family; the first is that of services that do not choose. */
  readonly clusterIpRanges: readonly string[];
  /** Both ends included. */
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** The port on the nodes of the server's own service; 0: none. */
  readonly ownNodePort: number;
}

export interface StorageConfig {
  /** `level:///var/lib/svc/kvstore` or `memory://`. */
  readonly url: string;
  /** `/registry` */
  readonly prefix: string;
  readonly mediaType: StorageMediaType;
  /** 0: history is never compacted. */
  readonly compactionIntervalMs: number;
  readonly eventTtlMs: number;
  /** How long the start waits for the store. */
  readonly initializationTimeoutMs: number;
  /** How long `/livez` and `/healthz` wait for the store. */
  readonly healthTimeoutMs: number;
  /** How long `/readyz` waits for the store. */
  readonly readyTimeoutMs: number;
}

/** How the server reaches node agents, for `pods/log`. */
export interface AgentConnectionConfig {
  /** PEM files; without them the agent sees an anonymous server. */
  readonly clientCertificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** PEM bundle; without it agents' serving certificates are not verified, as in Kubernetes. */
  readonly certificateAuthorityFile: string | undefined;
  readonly timeoutMs: number;
  /** In order: `InternalIP`, `Hostname`, … */
  readonly preferredAddressTypes: readonly string[];
}

export interface LimitsConfig {
  /** For every request but the long-running ones. */
  readonly requestTimeoutMs: number;
  /** A watch without a timeout of its own ends between this and twice this. */
  readonly minRequestTimeoutMs: number;
  /** How long the server goes on serving, not ready, after it was told to stop. */
  readonly shutdownDelayMs: number;
}

/** To write over: everything in memory, any free port on loopback, everybody may do everything. */
export const defaultConfig: ApiServerConfig = {
  bindAddress: "127.0.0.1",
  securePort: 0,
  serving: {
    certificate: undefined,
    certDir: "/var/run/svc",
    minVersion: undefined,
    ciphers: undefined,
    streamsPerConnection: 0,
    disableHttp2: false,
    sharePort: false,
    strictTransportSecurity: [],
    corsOrigins: [],
    advertisedHost: undefined,
  },
  authentication: { clientCaFile: undefined, tokenFile: undefined, anonymous: true },
  authorizationModes: ["AlwaysAllow"],
  pods: { allowPrivileged: true, notReadySeconds: 300, unreachableSeconds: 300 },
  services: { clusterIpRanges: ["10.0.0.0/24"], nodePorts: { first: 30_000, last: 32_767 }, ownNodePort: 0 },
  storage: {
    url: "memory://",
    prefix: "/registry",
    mediaType: "application/vnd.svc.protobuf",
    compactionIntervalMs: 300_000,
    eventTtlMs: 3_600_000,
    initializationTimeoutMs: 60_000,
    healthTimeoutMs: 2000,
    readyTimeoutMs: 2000,
  },
  agents: {
    clientCertificate: undefined,
    certificateAuthorityFile: undefined,
    timeoutMs: 5000,
    preferredAddressTypes: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
  },
  limits: { requestTimeoutMs: 60_000, minRequestTimeoutMs: 1_800_000, shutdownDelayMs: 0 },
  gitVersion: "v1.33.0-svc",
  groupAliases: true,
  garbageCollector: false,
  watchList: false,
  embeddedControllers: [],
};
