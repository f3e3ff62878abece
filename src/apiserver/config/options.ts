/** Creates the configuration of the API server from its flags. */
import { join } from "node:path";
import { type SigningAuthorities, singleAuthority } from "../../controllers/signing-authorities.ts";
import { type Flag, type ParsedFlags, printValue } from "../../flags/flag.ts";
import type { FeatureGates } from "../../flags/gates.ts";
import { parseTlsVersion, toOpenSslCiphers } from "../../http/tls/cipher-suites.ts";
import { apiserverFlags } from "../flags/flags.ts";
import { emulatedVersion } from "../flags/values.ts";
import { auditConfig } from "./audit-options.ts";
import {
  type ApiServerConfig,
  type AuthorizationConfig,
  DEFAULT_ISSUER,
  type OidcConfig,
  type RequestHeaderConfig,
  type ServiceAccountTokensConfig,
  type StoreOverride,
  type StructuredAuthentication,
  type TokenWebhookConfig,
} from "./config.ts";

type Flags = ParsedFlags<typeof apiserverFlags>;

const DEFAULT_RANGES = ["10.0.0.0/24"];
const DEFAULT_STORE = "level:///var/lib/svc/kvstore";

function encryptionOptions(flags: Flags, gates: FeatureGates): ApiServerConfig["storage"]["encryption"] {
  const file = flags["encryption-provider-config"];
  const reload = flags["encryption-provider-config-automatic-reload"];
  if (file !== "") return { file, reload, kmsV1: gates.has("KMSv1") };
  if (!reload) return undefined;
  throw new Error("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
}

/** Throws one sentence for flag values that this build does not support. */
export function apiServerOptions(
  flags: Flags,
  gates: FeatureGates,
  gitVersion: string,
  given: ReadonlySet<string> = new Set(),
): ApiServerConfig {
  return {
    bindAddress: flags["bind-address"],
    securePort: flags["secure-port"],
    workers: flags.workers,
    serving: {
      certificate: keyPairFiles(flags["tls-cert-file"], flags["tls-private-key-file"]),
      certDir: flags["cert-dir"],
      sniCertificates: flags["tls-sni-cert-key"],
      minVersion: parseTlsVersion(flags["tls-min-version"]),
      ciphers: toOpenSslCiphers(flags["tls-cipher-suites"]),
      streamsPerConnection: flags["http2-max-streams-per-connection"],
      goawayChance: flags["goaway-chance"],
      bytesPerSecond: flags["max-connection-bytes-per-sec"],
      disableHttp2: flags["disable-http2-serving"],
      sharePort: flags["permit-port-sharing"],
      strictTransportSecurity: flags["strict-transport-security-directives"],
      corsOrigins: flags["cors-allowed-origins"],
      advertisedHost: nonEmpty(flags["external-hostname"]) ?? nonEmpty(flags["advertise-address"]),
    },
    authentication: {
      clientCaFile: nonEmpty(flags["client-ca-file"]),
      certificateUids: gates.has("AllowParsingUserUIDFromCertAuth"),
      tokenFile: nonEmpty(flags["token-auth-file"]),
      anonymous: flags["anonymous-auth"] && !allowsEverything(flags),
      requestHeader: requestHeaderConfig(flags, gates),
      bootstrapTokens: flags["enable-bootstrap-token-auth"],
      structured: structuredAuthenticationConfig(flags, gates, given),
      oidc: oidcConfig(flags),
      webhook: tokenWebhookConfig(flags),
      serviceAccounts: serviceAccountTokensConfig(flags),
    },
    authorizationModes: flags["authorization-mode"],
    authorization: authorizationConfig(flags, gates),
    admission: {
      enabled: flags["enable-admission-plugins"],
      disabled: flags["disable-admission-plugins"],
      controlFile: nonEmpty(flags["admission-control-config-file"]),
      allowPrivileged: flags["allow-privileged"],
      tolerationSeconds: {
        notReady: flags["default-not-ready-toleration-seconds"],
        unreachable: flags["default-unreachable-toleration-seconds"],
      },
      serviceEndpoints: flags["enable-aggregator-routing"],
    },
    audit: auditConfig(flags),
    egressSelectorFile: nonEmpty(flags["egress-selector-config-file"]),
    tracingFile: tracingFile(flags, gates),
    services: {
      clusterIpRanges:
        flags["service-cluster-ip-range"].length === 0 ? DEFAULT_RANGES : flags["service-cluster-ip-range"],
      nodePorts: flags["service-node-port-range"],
      kubernetesServiceNodePort: flags["svc-service-node-port"],
      endpointReconciler: flags["endpoint-reconciler-type"],
      advertiseAddress: nonEmpty(flags["advertise-address"]),
    },
    storage: {
      urls: storeUrls(flags["kvstore-servers"]),
      overrides: flags["kvstore-servers-overrides"].map(parseOverride),
      tls: {
        caFile: nonEmpty(flags["kvstore-cafile"]),
        certFile: nonEmpty(flags["kvstore-certfile"]),
        keyFile: nonEmpty(flags["kvstore-keyfile"]),
      },
      prefix: flags["kvstore-prefix"],
      mediaType: flags["storage-media-type"],
      names: storeUrls(flags["kvstore-servers"]).some(isRemoteStore) ? "k8s" : "svc",
      encryption: encryptionOptions(flags, gates),
      compactionIntervalMs: flags["kvstore-compaction-interval"],
      quotaBytes: storeQuotaBytes(flags["kvstore-quota-bytes"]),
      eventTtlMs: flags["event-ttl"],
      leaseReuseSeconds: flags["lease-reuse-duration-seconds"],
      uncached: flags["watch-cache"] ? uncachedResources(flags["watch-cache-sizes"]) : "all",
      initializationTimeoutMs: flags["storage-initialization-timeout"],
      healthTimeoutMs: flags["kvstore-healthcheck-timeout"],
      readyTimeoutMs: flags["kvstore-readycheck-timeout"],
    },
    peers: peersConfig(flags, gates),
    rejectsExtensionRedirects: flags["aggregator-reject-forwarding-redirect"],
    proxyClientCertificate: keyPairFiles(flags["proxy-client-cert-file"], flags["proxy-client-key-file"]),
    agents: {
      clientCertificate: keyPairFiles(flags["svclet-client-certificate"], flags["svclet-client-key"]),
      certificateAuthorityFile: nonEmpty(flags["svclet-certificate-authority"]),
      timeoutMs: flags["svclet-timeout"],
      preferredAddressTypes: flags["svclet-preferred-address-types"],
    },
    limits: {
      requestTimeoutMs: flags["request-timeout"],
      minRequestTimeoutMs: flags["min-request-timeout"] * 1000,
      inFlight: {
        readOnly: flags["max-requests-inflight"],
        mutating: flags["max-mutating-requests-inflight"],
        shared: flags["enable-priority-and-fairness"],
      },
    },
    shutdown: {
      delayMs: flags["shutdown-delay-duration"],
      sendRetryAfter: flags["shutdown-send-retry-after"],
      watchGraceMs: flags["shutdown-watch-termination-grace-period"],
    },
    livezGraceMs: flags["livez-grace-period"],
    apis: {
      runtimeConfig: flags["runtime-config"],
      emulatedVersion: emulatedVersion(flags["emulated-version"]),
      forwardCompatible: flags["emulation-forward-compatible"],
      runtimeConfigForwardCompatible: flags["runtime-config-emulation-forward-compatible"],
    },
    observability: {
      metrics: {
        allowedLabels: flags["allow-metric-labels"],
        allowedLabelsFile: nonEmpty(flags["allow-metric-labels-manifest"]),
        disabled: flags["disabled-metrics"],
        showHidden: flags["show-hidden-metrics-for-version"] !== "",
      },
      countPollMs: flags["kvstore-count-metric-poll-period"],
      sizePollMs: flags["kvstore-db-metric-poll-interval"],
      profiling: flags.profiling,
      contentionProfiling: flags["contention-profiling"],
      debugSocket: nonEmpty(flags["debug-socket-path"]),
      features: gates.list(),
      flags: printedFlags(flags),
    },
    gitVersion,
    groupAliases: { served: flags["api-group-aliases"] !== "", listed: flags["list-api-group-aliases"] },
    garbageCollector: flags["enable-garbage-collector"],
    deleteCollectionWorkers: flags["delete-collection-workers"],
    watchList: gates.has("WatchList"),
    cbor: gates.has("CBORServingAndStorage"),
    embeddedControllers: flags["embedded-controllers"],
    signing: signingAuthorities(flags),
  };
}

function peersConfig(flags: Flags, gates: FeatureGates): ApiServerConfig["peers"] {
  const forwards = gates.has("UnknownVersionInteroperabilityProxy");
  const publishes = gates.has("StorageVersionAPI") && gates.has("APIServerIdentity");
  if (forwards && !gates.has("StorageVersionAPI")) {
    throw new Error(
      "UnknownVersionInteroperabilityProxy feature requires StorageVersionAPI feature flag to be enabled",
    );
  }
  if (forwards && flags["proxy-client-cert-file"] === "") {
    throw new Error("error building peer proxy handler, proxy-cert-file not specified");
  }
  if (!forwards && !publishes) return undefined;
  const port = flags["peer-advertise-port"];
  return {
    forwards,
    advertiseIp: nonEmpty(flags["peer-advertise-ip"]),
    advertisePort: port === "" ? undefined : Number(port),
    caFile: nonEmpty(flags["peer-ca-file"]),
  };
}

function tracingFile(flags: Flags, gates: FeatureGates): string | undefined {
  const file = nonEmpty(flags["tracing-config-file"]);
  if (file === undefined || gates.has("APIServerTracing")) return file;
  throw new Error("APIServerTracing feature is not enabled, but --tracing-config-file was provided");
}

/** Kubernetes' timeout of the webhook authorizer of the flags. */
const WEBHOOK_TIMEOUT_MS = 30_000;

/** As etcd's --quota-backend-bytes. */
const DEFAULT_QUOTA_BYTES = 2 * 2 ** 30;

/** What `--kvstore-quota-bytes` specifies; undefined means no quota. */
export function storeQuotaBytes(flag: number): number | undefined {
  if (flag === 0) return DEFAULT_QUOTA_BYTES;
  return flag < 0 ? undefined : flag;
}

function authorizationConfig(flags: Flags, gates: FeatureGates): AuthorizationConfig {
  return {
    configFile: nonEmpty(flags["authorization-config"]),
    policyFile: nonEmpty(flags["authorization-policy-file"]),
    webhook: {
      file: nonEmpty(flags["authorization-webhook-config-file"]),
      version: flags["authorization-webhook-version"],
      authorizedTtlMs: flags["authorization-webhook-cache-authorized-ttl"],
      unauthorizedTtlMs: flags["authorization-webhook-cache-unauthorized-ttl"],
      timeoutMs: WEBHOOK_TIMEOUT_MS,
    },
    selectors: gates.has("AuthorizeWithSelectors"),
    nodeSelectors: gates.has("AuthorizeNodeWithSelectors"),
    nodeServiceAccounts: gates.has("SvcletServiceAccountTokenForCredentialProviders"),
    nodeResourceClaims: gates.has("DynamicResourceAllocation"),
  };
}

function signingAuthorities(flags: Flags): SigningAuthorities | undefined {
  const authority = keyPairFiles(flags["cluster-signing-cert-file"], flags["cluster-signing-key-file"]);
  if (authority === undefined) return undefined;
  return singleAuthority(authority, flags["cluster-signing-duration"]);
}

function printedFlags(flags: Flags): Readonly<Record<string, string>> {
  const rows = Object.entries(apiserverFlags) as [keyof Flags, Flag][];
  return Object.fromEntries(rows.map(([name, row]) => [name, printValue(row, flags[name])]));
}

function requestHeaderConfig(flags: Flags, gates: FeatureGates): RequestHeaderConfig | undefined {
  const caFile = nonEmpty(flags["requestheader-client-ca-file"]);
  if (caFile === undefined) return undefined;
  return {
    caFile,
    allowedNames: flags["requestheader-allowed-names"],
    usernames: flags["requestheader-username-headers"],
    groups: flags["requestheader-group-headers"],
    uids: gates.has("RemoteRequestHeaderUID") ? flags["requestheader-uid-headers"] : [],
    extraPrefixes: flags["requestheader-extra-headers-prefix"],
  };
}

/** Whether the mode AlwaysAllow is set, with which anonymous requests are rejected, as in Kubernetes. */
export function allowsEverything(flags: Flags): boolean {
  return flags["authorization-config"] === "" && flags["authorization-mode"].includes("AlwaysAllow");
}

function structuredAuthenticationConfig(
  flags: Flags,
  gates: FeatureGates,
  given: ReadonlySet<string>,
): StructuredAuthentication | undefined {
  const file = nonEmpty(flags["authentication-config"]);
  if (file === undefined) return undefined;
  const gate = "AnonymousAuthConfigurableEndpoints";
  const anonymousRefused = allowsEverything(flags);
  if (!gates.has(gate)) {
    const anonymousForbidden = `anonymous is not supported when ${gate} feature gate is disabled`;
    return { file, anonymousRefused, anonymousForbidden };
  }
  const isSet = given.has("anonymous-auth");
  const anonymousForbidden = isSet
    ? "--anonymous-auth flag cannot be set when anonymous field is configured"
    : undefined;
  return { file, anonymousRefused, anonymousForbidden };
}

function oidcConfig(flags: Flags): OidcConfig | undefined {
  if (flags["oidc-issuer-url"] === "") return undefined;
  return {
    issuerUrl: flags["oidc-issuer-url"],
    clientId: flags["oidc-client-id"],
    caFile: nonEmpty(flags["oidc-ca-file"]),
    usernameClaim: flags["oidc-username-claim"],
    usernamePrefix: flags["oidc-username-prefix"],
    groupsClaim: flags["oidc-groups-claim"],
    groupsPrefix: flags["oidc-groups-prefix"],
    requiredClaims: flags["oidc-required-claim"],
    signingAlgorithms: flags["oidc-signing-algs"],
  };
}

function tokenWebhookConfig(flags: Flags): TokenWebhookConfig | undefined {
  const file = nonEmpty(flags["authentication-token-webhook-config-file"]);
  if (file === undefined) return undefined;
  const version = flags["authentication-token-webhook-version"];
  return { file, version, cacheMs: flags["authentication-token-webhook-cache-ttl"] };
}

function serviceAccountTokensConfig(flags: Flags): ServiceAccountTokensConfig {
  const issuers = flags["service-account-issuer"];
  const keyFiles = flags["service-account-key-file"];
  return {
    issuers: issuers.length === 0 ? [DEFAULT_ISSUER] : issuers,
    audiences: flags["api-audiences"],
    jwksUri: nonEmpty(flags["service-account-jwks-uri"]),
    keyFiles,
    fallbackKeyFile: keyFiles.length === 0 ? nonEmpty(flags["tls-private-key-file"]) : undefined,
    signingKeyFile: nonEmpty(flags["service-account-signing-key-file"]),
    signingEndpoint: nonEmpty(flags["service-account-signing-endpoint"]),
    generatedKeyFile: generatedKeyFile(flags),
    lookup: flags["service-account-lookup"],
    maxTokenMs: flags["service-account-max-token-expiration"],
    extendTokens: flags["service-account-extend-token-expiration"],
  };
}

/** The generated key is stored beside the embedded store; with a store in memory it is in memory too. */
function generatedKeyFile(flags: Flags): string | undefined {
  const [url = ""] = storeUrls(flags["kvstore-servers"]);
  if (url.startsWith("level://")) return `${url.slice("level://".length)}-service-account.key`;
  return url === "memory://" ? undefined : join(flags["cert-dir"], "service-account.key");
}

function nonEmpty(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function keyPairFiles(certFile: string, keyFile: string) {
  return certFile === "" ? undefined : { certFile, keyFile };
}

/** The resources of `resource[.group]#size` with size 0; other sizes have no effect. */
function uncachedResources(sizes: readonly string[]): readonly string[] {
  return sizes.filter((size) => /#0+$/.test(size)).map((size) => size.slice(0, size.lastIndexOf("#")));
}

function storeUrls(servers: readonly string[]): readonly string[] {
  if (servers.length > 1 && !servers.every(isRemoteStore)) {
    const why = "only http:// and https:// servers form a store together";
    throw new Error(`Cannot use --kvstore-servers=${servers.join(",")}: ${why}`);
  }
  return servers.length === 0 ? [DEFAULT_STORE] : servers;
}

function isRemoteStore(url: string): boolean {
  return /^https?:/.test(url);
}

/** `group/resource#server;server` */
function parseOverride(text: string): StoreOverride {
  const [name = "", servers = ""] = text.split("#");
  const [group = "", resource = ""] = name.split("/");
  return { group, resource, urls: storeUrls(servers.split(";")) };
}
