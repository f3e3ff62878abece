/** The configuration of the API server; `options.ts` creates it from flags. */

import type { AdmissionSettings } from "../../admission/chain/create-plugins.ts";
import type { GroupAliases } from "../../api/group-aliases.ts";
import type { AuditConfig } from "../../audit/auditor.ts";
import type { RequestHeaderNames } from "../../auth/authn/request-header.ts";
import type { KeyPairFiles } from "../../auth/pki/key-pair.ts";
import type { MetricsConfig } from "../../component/metric-policy.ts";
import type { ControllerOptions } from "../../controllers/controller-options.ts";
import type { SigningAuthorities } from "../../controllers/signing-authorities.ts";
import type { FeatureState } from "../../flags/build-metrics.ts";
import type { TlsOptions } from "../../http/tls/options.ts";
import type { StorageMediaType } from "../../storage/codec.ts";
import type { EncryptionOptions } from "../../storage/encryption/storage-encryption.ts";
import type { StoreTlsFiles } from "../../storage/kvstore3/tls.ts";
import type { ApisConfig } from "../discovery/api-enablement.ts";
import type { InFlightLimits } from "../filters/max-in-flight.ts";
import type { ShutdownConfig } from "../serving/graceful-shutdown.ts";

export interface ApiServerConfig {
  /** Empty, `0.0.0.0` and `::` mean all interfaces. */
  readonly bindAddress: string;
  /** 0: any free port. */
  readonly securePort: number;
  /** Threads that serve connections, the main thread included. 0: `svc apiserver` chooses; elsewhere as 1. */
  readonly workers: number;
  readonly serving: ServingConfig;
  readonly authentication: AuthenticationConfig;
  /** `--authorization-mode`, in order: `Node`, `RBAC`, … */
  readonly authorizationModes: readonly string[];
  readonly authorization: AuthorizationConfig;
  readonly admission: AdmissionConfig;
  /** Undefined: no request is recorded. */
  readonly audit: AuditConfig | undefined;
  /** `--egress-selector-config-file`; undefined: connections are direct. */
  readonly egressSelectorFile: string | undefined;
  /** `--tracing-config-file`; undefined: no traces are exported. */
  readonly tracingFile: string | undefined;
  readonly services: ServicesConfig;
  readonly storage: StorageConfig;
  readonly agents: AgentConnectionConfig;
  /** The gates StorageVersionAPI and UnknownVersionInteroperabilityProxy; undefined: both are off. */
  readonly peers: PeersConfig | undefined;
  /** `--aggregator-reject-forwarding-redirect` */
  readonly rejectsExtensionRedirects: boolean;
  /** PEM files of the client certificate for webhooks; undefined: no client certificate. */
  readonly proxyClientCertificate: KeyPairFiles | undefined;
  readonly limits: LimitsConfig;
  readonly shutdown: ShutdownConfig;
  /** How long after the start `/livez` ignores unfinished post-start hooks. */
  readonly livezGraceMs: number;
  readonly observability: ObservabilityConfig;
  readonly apis: ApisConfig;
  /** The `gitVersion` of `/version`: `v1.33.0`. */
  readonly gitVersion: string;
  readonly groupAliases: GroupAliases;
  /** Whether to set the finalizers `orphan` and `foregroundDeletion`, which need a garbage collector. */
  readonly garbageCollector: boolean;
  readonly deleteCollectionWorkers: number;
  /** The `WatchList` feature gate: watches may start with the existing objects and a bookmark. */
  readonly watchList: boolean;
  /** The `CBORServingAndStorage` feature gate. */
  readonly cbor: boolean;
  /** Names of `controllers/controllers.ts`; `*` for all. */
  readonly embeddedControllers: readonly string[];
  /** Settings of the embedded controllers that differ from the defaults. */
  readonly controllerOptions?: Partial<ControllerOptions> | undefined;
  /** Creates a default storage class for the embedded local path provisioner. */
  readonly localPathClass?: boolean | undefined;
  /** The CAs of the embedded controller `csrsigning`. */
  readonly signing?: SigningAuthorities | undefined;
  /** PEM of the CA of the serving certificate, which the embedded root-ca-certificate-publisher publishes for pods. */
  readonly clusterCa?: string | undefined;
  /** Flags that `svc token create` adds to the command of machines that join; without spaces. */
  readonly agentFlags?: readonly string[] | undefined;
}

/** Other API servers over the same store. */
export interface PeersConfig {
  /** Whether requests are forwarded to them; otherwise this server only publishes its versions. */
  readonly forwards: boolean;
  /** `--peer-advertise-ip`; undefined: the address that clients connect to. */
  readonly advertiseIp: string | undefined;
  readonly advertisePort: number | undefined;
  /** `--peer-ca-file`; undefined: the system's CAs. */
  readonly caFile: string | undefined;
}

export interface ServingConfig {
  /** PEM files. When undefined, a self-signed certificate is generated into `certDir`. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly certDir: string;
  /** `--tls-sni-cert-key` */
  readonly sniCertificates: readonly SniCertificateFiles[];
  readonly minVersion: TlsOptions["minVersion"];
  /** OpenSSL names, separated by colons. */
  readonly ciphers: string | undefined;
  /** 0: the listener's default. */
  readonly streamsPerConnection: number;
  /** The fraction of HTTP/2 requests after which the connection is closed. */
  readonly goawayChance: number;
  /** The rate of the long-running responses of a connection; 0: no limit. */
  readonly bytesPerSecond: number;
  /** Serve HTTP/1.1 only. */
  readonly disableHttp2: boolean;
  /** Other processes may listen on the same port; the kernel spreads connections. */
  readonly sharePort: boolean;
  /** `max-age=31536000`, …; sent with every response. */
  readonly strictTransportSecurity: readonly string[];
  /** Regular expressions of allowed CORS origins. */
  readonly corsOrigins: readonly string[];
  /** The host that clients connect to; undefined: the bind address. */
  readonly advertisedHost: string | undefined;
}

export interface SniCertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Host names, also wildcards such as `*.example.com`, and addresses; empty: those of the certificate. */
  readonly names: readonly string[];
}

export interface AuthenticationConfig {
  /** PEM bundle of the CAs that sign client certificates of users. */
  readonly clientCaFile: string | undefined;
  /** Whether the subject of a client certificate may contain the user's uid. */
  readonly certificateUids: boolean;
  /** `token,user,uid,"group,group"` lines. */
  readonly tokenFile: string | undefined;
  readonly anonymous: boolean;
  /** Front proxies that authenticate users and send their names in headers. */
  readonly requestHeader: RequestHeaderConfig | undefined;
  /** Whether bootstrap tokens authenticate. */
  readonly bootstrapTokens: boolean;
  /** `--authentication-config` */
  readonly structured: StructuredAuthentication | undefined;
  /** The issuer of ID tokens of the `--oidc-*` flags. */
  readonly oidc: OidcConfig | undefined;
  readonly webhook: TokenWebhookConfig | undefined;
  readonly serviceAccounts: ServiceAccountTokensConfig;
}

export interface RequestHeaderConfig extends RequestHeaderNames {
  readonly caFile: string;
  /** Common names of the proxies; empty: every certificate of the CA. */
  readonly allowedNames: readonly string[];
}

export interface StructuredAuthentication {
  readonly file: string;
  /** Whether anonymous requests are refused although the file enables them: every user is allowed everything. */
  readonly anonymousRefused: boolean;
  /** Why the file may not configure anonymous requests; undefined when it may. */
  readonly anonymousForbidden: string | undefined;
}

/** The `--oidc-*` flags; empty when not set. */
export interface OidcConfig {
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly caFile: string | undefined;
  readonly usernameClaim: string;
  readonly usernamePrefix: string;
  readonly groupsClaim: string;
  readonly groupsPrefix: string;
  readonly requiredClaims: Readonly<Record<string, string>>;
  readonly signingAlgorithms: readonly string[];
}

export interface TokenWebhookConfig {
  /** A kubeconfig file. */
  readonly file: string;
  readonly version: "v1" | "v1beta1";
  /** How long responses are cached. */
  readonly cacheMs: number;
}

/** Settings of authorizers. */
export interface AuthorizationConfig {
  /** `--authorization-config`, which replaces the modes. */
  readonly configFile: string | undefined;
  /** ABAC policies, one per line. */
  readonly policyFile: string | undefined;
  readonly webhook: {
    /** A kubeconfig file. */
    readonly file: string | undefined;
    readonly version: "v1" | "v1beta1";
    /** How long responses are cached. */
    readonly authorizedTtlMs: number;
    readonly unauthorizedTtlMs: number;
    readonly timeoutMs: number;
  };
  /** The gate `AuthorizeWithSelectors`: attributes include selectors. */
  readonly selectors: boolean;
  /** The gate `AuthorizeNodeWithSelectors`: nodes must select their own objects. */
  readonly nodeSelectors: boolean;
  /** The gate `SvcletServiceAccountTokenForCredentialProviders`: nodes may read the accounts of their pods. */
  readonly nodeServiceAccounts: boolean;
  /** The gate `DynamicResourceAllocation`: nodes may read the resource claims of their pods. */
  readonly nodeResourceClaims: boolean;
}

/** Settings of admission plugins. */
export interface AdmissionConfig extends AdmissionSettings {
  /** Whether privileged containers are allowed. */
  readonly allowPrivileged: boolean;
  /** tolerationSeconds of the default tolerations. */
  readonly tolerationSeconds: { readonly notReady: number; readonly unreachable: number };
  /** Whether services of webhooks are called at an endpoint instead of the cluster IP. */
  readonly serviceEndpoints: boolean;
}

/** Service account tokens. */
export interface ServiceAccountTokensConfig {
  /** Accepted issuers; the first one issues tokens. */
  readonly issuers: readonly string[];
  /** The accepted audiences; empty: the issuers. */
  readonly audiences: readonly string[];
  /** The URI of the JWKS, when another server publishes it. */
  readonly jwksUri: string | undefined;
  /** PEM files with keys that verify tokens. */
  readonly keyFiles: readonly string[];
  /** A PEM file whose suitable keys also verify tokens. */
  readonly fallbackKeyFile?: string | undefined;
  /** PEM. When undefined, the server generates a key. */
  readonly signingKeyFile: string | undefined;
  /** The socket of an external signer. */
  readonly signingEndpoint: string | undefined;
  /** The file of the generated key; undefined: in memory. */
  readonly generatedKeyFile: string | undefined;
  /** Whether the secret of a legacy token must still exist. */
  readonly lookup: boolean;
  /** The maximum validity of tokens; 0: no maximum. */
  readonly maxTokenMs: number;
  /** Whether tokens that agents request for pods are valid for a year, for clients that do not reload them. */
  readonly extendTokens: boolean;
}

/** `--endpoint-reconciler-type` */
export type EndpointReconcilerType = "lease" | "master-count" | "none";

export interface ServicesConfig {
  /** One range, or one for each IP family; the first is that of single-stack services. */
  readonly clusterIpRanges: readonly string[];
  /** Inclusive. */
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** The node port of the kubernetes service; 0: none. */
  readonly kubernetesServiceNodePort: number;
  /** How the endpoints of the kubernetes service are maintained. */
  readonly endpointReconciler: EndpointReconcilerType;
  /** The address at which members of the cluster reach this server; undefined: the bind address. */
  readonly advertiseAddress: string | undefined;
}

export interface StoreOverride {
  /** Empty for the core group. */
  readonly group: string;
  /** `events` */
  readonly resource: string;
  /** As `StorageConfig.urls`. */
  readonly urls: readonly string[];
}

export interface StorageConfig {
  /** `level:///var/lib/svc/kvstore`, `memory://`, or the servers of a remote store: `https://192.0.2.1:2379`. */
  readonly urls: readonly string[];
  /** Built-in resources with a store of their own. */
  readonly overrides: readonly StoreOverride[];
  /** PEM files of connections to remote servers. */
  readonly tls: StoreTlsFiles;
  /** `/registry` */
  readonly prefix: string;
  readonly mediaType: StorageMediaType;
  /** Kubernetes' in a remote store, which its API servers may use as well. */
  readonly names: "svc" | "k8s";
  /** Undefined: values are stored as plain text. */
  readonly encryption: EncryptionOptions | undefined;
  /** 0: history is never compacted. */
  readonly compactionIntervalMs: number;
  readonly eventTtlMs: number;
  /** In bytes, of a store on disk; undefined for none. */
  readonly quotaBytes: number | undefined;
  /** The period within which values with a time to live share a lease. */
  readonly leaseReuseSeconds: number;
  /** Resources that clients read from the store instead of a watch cache: `events`, `deployments.apps`; or all. */
  readonly uncached: "all" | readonly string[];
  /** How long the start waits for the store. */
  readonly initializationTimeoutMs: number;
  /** How long `/livez` and `/healthz` wait for the store. */
  readonly healthTimeoutMs: number;
  /** How long `/readyz` waits for the store. */
  readonly readyTimeoutMs: number;
}

/** Connections to node agents, for `pods/log` and the node proxy. */
export interface AgentConnectionConfig {
  /** PEM files; without them the server is anonymous to agents. */
  readonly clientCertificate: KeyPairFiles | undefined;
  /** PEM bundle; without it agents' serving certificates are not verified, as in Kubernetes. */
  readonly certificateAuthorityFile: string | undefined;
  readonly timeoutMs: number;
  /** In order of preference: `InternalIP`, `Hostname`, … */
  readonly preferredAddressTypes: readonly string[];
}

export interface LimitsConfig {
  /** The deadline of requests other than long-running ones. */
  readonly requestTimeoutMs: number;
  /** A watch without a timeout ends after a random time between this and twice this. */
  readonly minRequestTimeoutMs: number;
  readonly inFlight: InFlightLimits;
}

/** Metrics, profiling and status pages. */
export interface ObservabilityConfig {
  readonly metrics: MetricsConfig;
  /** The interval of object counts; 0: never. */
  readonly countPollMs: number;
  /** The interval of measurements of the store's size; 0: never. */
  readonly sizePollMs: number;
  /** Serve `/debug/pprof` and `/debug/flags`. */
  readonly profiling: boolean;
  /** Measure the delay of the event loop continuously. */
  readonly contentionProfiling: boolean;
  /** The path of a Unix socket that serves the same without authentication. */
  readonly debugSocket: string | undefined;
  /** All feature gates. */
  readonly features: readonly FeatureState[];
  /** All flags with their values as text, for `/flagz`. */
  readonly flags: Readonly<Record<string, string>>;
}

/** The default issuer: the URL of the API server inside a cluster. */
export const DEFAULT_ISSUER = "https://kubernetes.default.svc";
