/** Everything the API server can be told, as checked values. Flags become this in `options.ts`. */

import type { AdmissionSettings } from "../../admission/chain/create-plugins.ts";
import type { RequestHeaderNames } from "../../auth/authn/request-header.ts";
import type { KeyPairFiles } from "../../auth/pki/key-pair.ts";
import type { SigningAuthorities } from "../../controllers/signing-authorities.ts";
import type { TlsOptions } from "../../http/tls/options.ts";
import type { StorageMediaType } from "../../storage/codec.ts";
import type { ApisConfig } from "../discovery/api-enablement.ts";
import type { InFlightLimits } from "../filters/max-in-flight.ts";
import type { FeatureState } from "../metrics/build-metrics.ts";
import type { MetricsConfig } from "../metrics/metric-policy.ts";
import type { ShutdownConfig } from "../serving/graceful-shutdown.ts";

export interface ApiServerConfig {
  /** Empty, `0.0.0.0` and `::` stand for all interfaces. */
  readonly bindAddress: string;
  /** 0: any free port. */
  readonly securePort: number;
  readonly serving: ServingConfig;
  readonly authentication: AuthenticationConfig;
  /** `--authorization-mode`, in order: `Node`, `RBAC`, … */
  readonly authorizationModes: readonly string[];
  readonly authorization: AuthorizationConfig;
  readonly admission: AdmissionConfig;
  readonly services: ServicesConfig;
  readonly storage: StorageConfig;
  readonly agents: AgentConnectionConfig;
  /** PEM files by which webhooks know who calls them; without them they see nobody in particular. */
  readonly proxyClientCertificate: KeyPairFiles | undefined;
  readonly limits: LimitsConfig;
  readonly shutdown: ShutdownConfig;
  /** How long after the start `/livez` takes what is not finished for finished. */
  readonly livezGraceMs: number;
  readonly observability: ObservabilityConfig;
  readonly apis: ApisConfig;
  /** Answered by `/version`: `v1.33.0`. */
  readonly gitVersion: string;
  /** Serve the `svc.io` groups under their Kubernetes spelling as well. */
  readonly groupAliases: boolean;
  /** Whether somebody acts on the finalizers `orphan` and `foregroundDeletion`; without, they are not set. */
  readonly garbageCollector: boolean;
  readonly deleteCollectionWorkers: number;
  /** The `WatchList` feature gate: watches may start with all there is, and a bookmark that says so. */
  readonly watchList: boolean;
  /** The `CBORServingAndStorage` feature gate. */
  readonly cbor: boolean;
  /** Names of `controllers/controllers.ts`; `*` for all. */
  readonly embeddedControllers: readonly string[];
  /** Who signs certificates that are asked for and approved, where the controller `csrsigning` runs. */
  readonly signing?: SigningAuthorities | undefined;
  /** PEM of the authority that signed the serving certificate: what an embedded publisher tells pods to trust. */
  readonly clusterCa?: string | undefined;
}

export interface ServingConfig {
  /** PEM files. When undefined, a self-signed pair is kept in `certDir`. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
  readonly certDir: string;
  /** For clients that ask for other names. */
  readonly sniCertificates: readonly SniCertificateFiles[];
  readonly minVersion: TlsOptions["minVersion"];
  /** OpenSSL's names, separated by colons. */
  readonly ciphers: string | undefined;
  /** 0: the listener's default. */
  readonly streamsPerConnection: number;
  /** The part of requests over HTTP/2 after which the connection ends. */
  readonly goawayChance: number;
  /** For what a connection's long-running requests are sent; 0: no limit. */
  readonly bytesPerSecond: number;
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

export interface SniCertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** Host names, `*.example.com` among them, and addresses; empty: those of the certificate. */
  readonly names: readonly string[];
}

export interface AuthenticationConfig {
  /** PEM bundle; client certificates it signed are users. */
  readonly clientCaFile: string | undefined;
  /** Whether the subjects of client certificates may say what the user's uid is. */
  readonly certificateUids: boolean;
  /** `token,user,uid,"group,group"` lines. */
  readonly tokenFile: string | undefined;
  readonly anonymous: boolean;
  /** Proxies in front of the server, that say in headers who asks. */
  readonly requestHeader: RequestHeaderConfig | undefined;
  /** Whether secrets hold tokens for machines that have nothing else yet. */
  readonly bootstrapTokens: boolean;
  /** An `AuthenticationConfiguration`, and what it may decide. */
  readonly structured: StructuredAuthentication | undefined;
  /** An issuer of identity tokens as the flags describe it. */
  readonly oidc: OidcConfig | undefined;
  readonly webhook: TokenWebhookConfig | undefined;
  readonly serviceAccounts: ServiceAccountTokensConfig;
}

export interface RequestHeaderConfig extends RequestHeaderNames {
  readonly caFile: string;
  /** Common names of the proxies; empty for every certificate of the authority. */
  readonly allowedNames: readonly string[];
}

export interface StructuredAuthentication {
  readonly file: string;
  /** Undefined where the file may say who is let in without a name; else why it may not. */
  readonly anonymousRefused: string | undefined;
}

/** The `--oidc-*` flags. Empty texts were not given. */
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
  /** A connection file. */
  readonly file: string;
  readonly version: "v1" | "v1beta1";
  /** How long answers are good for. */
  readonly cacheMs: number;
}

/** What authorizers are told beside their order. */
export interface AuthorizationConfig {
  /** An `AuthorizationConfiguration`, in place of modes. */
  readonly configFile: string | undefined;
  /** Policies for ABAC, one a line. */
  readonly policyFile: string | undefined;
  readonly webhook: {
    /** A connection file. */
    readonly file: string | undefined;
    readonly version: "v1" | "v1beta1";
    /** How long answers are good for. */
    readonly authorizedTtlMs: number;
    readonly unauthorizedTtlMs: number;
    readonly timeoutMs: number;
  };
  /** The gate `AuthorizeWithSelectors`: authorizers hear what lists and watches select. */
  readonly selectors: boolean;
  /** The gate `AuthorizeNodeWithSelectors`: nodes must select what is theirs. */
  readonly nodeSelectors: boolean;
  /** The gate `SvcletServiceAccountTokenForCredentialProviders`: nodes may read the accounts of their pods. */
  readonly nodeServiceAccounts: boolean;
}

/** Who has a say in what is written, and what they go by. */
export interface AdmissionConfig extends AdmissionSettings {
  /** Whether containers may have all privileges. */
  readonly allowPrivileged: boolean;
  /** How long pods stay on a node that is in trouble, unless they say themselves. */
  readonly tolerationSeconds: { readonly notReady: number; readonly unreachable: number };
  /** Whether webhooks' services are reached at one of their endpoints rather than at the cluster's address. */
  readonly serviceEndpoints: boolean;
}

/** Tokens that stand for service accounts. */
export interface ServiceAccountTokensConfig {
  /** All are believed; the first signs. */
  readonly issuers: readonly string[];
  /** Whom this server is, to tokens; empty for its issuers. */
  readonly audiences: readonly string[];
  /** Where clients find the keys, if not here. */
  readonly jwksUri: string | undefined;
  /** PEM files with keys that verify tokens. */
  readonly keyFiles: readonly string[];
  /** A PEM file whose keys verify tokens too, if it holds any that can. */
  readonly fallbackKeyFile?: string | undefined;
  /** PEM. When undefined, the server makes a key. */
  readonly signingKeyFile: string | undefined;
  /** A socket of somebody else who signs. */
  readonly signingEndpoint: string | undefined;
  /** Where it keeps that key; in memory when undefined. */
  readonly generatedKeyFile: string | undefined;
  /** Whether a token that lies in a secret must be there still. */
  readonly lookup: boolean;
  /** Tokens last no longer; 0: as long as asked for. */
  readonly maxTokenMs: number;
  /** Tokens that agents fetch for pods last a year, for clients that never read the newer ones. */
  readonly extendTokens: boolean;
}

/** `--endpoint-reconciler-type` */
export type EndpointReconcilerType = "lease" | "master-count" | "none";

export interface ServicesConfig {
  /** One block, or one of each family; the first is that of services that do not choose. */
  readonly clusterIpRanges: readonly string[];
  /** Both ends included. */
  readonly nodePorts: { readonly first: number; readonly last: number };
  /** The port on the nodes of the server's own service; 0: none. */
  readonly kubernetesServiceNodePort: number;
  /** Who says where that service leads. */
  readonly endpointReconciler: EndpointReconcilerType;
  /** Where members of the cluster reach this server; undefined: where it listens. */
  readonly advertiseAddress: string | undefined;
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
  /** For how long values with a time to live share its end. */
  readonly leaseReuseSeconds: number;
  /** What clients read from the store instead of a watch cache: `events`, `deployments.apps`; or all. */
  readonly uncached: "all" | readonly string[];
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
  readonly clientCertificate: KeyPairFiles | undefined;
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
  readonly inFlight: InFlightLimits;
}

/** What operators see of the server beside its API. */
export interface ObservabilityConfig {
  readonly metrics: MetricsConfig;
  /** How often the objects of each kind are counted; 0: never. */
  readonly countPollMs: number;
  /** How often the store's size is looked at; 0: never. */
  readonly sizePollMs: number;
  /** Serve `/debug/pprof` and `/debug/flags`. */
  readonly profiling: boolean;
  /** Watch, all the time, how long the event loop is kept from its work. */
  readonly contentionProfiling: boolean;
  /** A Unix socket that serves the same to whoever may open it. */
  readonly debugSocket: string | undefined;
  /** Every feature gate, on or off. */
  readonly features: readonly FeatureState[];
  /** Every flag with its value as text, for `/flagz`. */
  readonly flags: Readonly<Record<string, string>>;
}

/** The server as pods know it: what the names of issuers say when nobody says anything else. */
export const DEFAULT_ISSUER = "https://kubernetes.default.svc";
