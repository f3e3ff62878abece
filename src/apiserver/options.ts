/** From checked flags to what the server is told. */

import type { ParsedFlags } from "../flags/flag.ts";
import type { FeatureGates } from "../flags/gates.ts";
import { openSslCiphers, tlsVersion } from "../http/tls-suites.ts";
import type { ApiServerConfig } from "./config.ts";
import type { apiserverFlags } from "./flags.ts";

type Flags = ParsedFlags<typeof apiserverFlags>;

const DEFAULT_RANGES = ["10.0.0.0/24"];
const DEFAULT_STORE = "level:///var/lib/svc/kvstore";

/** Throws with one sentence for what flags can say and this build cannot do. */
export function apiServerOptions(flags: Flags, gates: FeatureGates, gitVersion: string): ApiServerConfig {
  return {
    bindAddress: flags["bind-address"],
    securePort: flags["secure-port"],
    serving: {
      certificate: pair(flags["tls-cert-file"], flags["tls-private-key-file"]),
      certDir: flags["cert-dir"],
      minVersion: tlsVersion(flags["tls-min-version"]),
      ciphers: openSslCiphers(flags["tls-cipher-suites"]),
      streamsPerConnection: flags["http2-max-streams-per-connection"],
      disableHttp2: flags["disable-http2-serving"],
      sharePort: flags["permit-port-sharing"],
      strictTransportSecurity: flags["strict-transport-security-directives"],
      corsOrigins: flags["cors-allowed-origins"],
      advertisedHost: set(flags["external-hostname"]) ?? set(flags["advertise-address"]),
    },
    authentication: {
      clientCaFile: set(flags["client-ca-file"]),
      tokenFile: set(flags["token-auth-file"]),
      anonymous: flags["anonymous-auth"],
    },
    authorizationModes: flags["authorization-mode"],
    pods: {
      allowPrivileged: flags["allow-privileged"],
      notReadySeconds: flags["default-not-ready-toleration-seconds"],
      unreachableSeconds: flags["default-unreachable-toleration-seconds"],
    },
    services: {
      clusterIpRanges:
        flags["service-cluster-ip-range"].length === 0 ? DEFAULT_RANGES : flags["service-cluster-ip-range"],
      nodePorts: flags["service-node-port-range"],
      ownNodePort: flags["svc-service-node-port"],
    },
    storage: {
      url: storeUrl(flags["kvstore-servers"]),
      prefix: flags["kvstore-prefix"],
      mediaType: flags["storage-media-type"],
      compactionIntervalMs: flags["kvstore-compaction-interval"],
      eventTtlMs: flags["event-ttl"],
      initializationTimeoutMs: flags["storage-initialization-timeout"],
      healthTimeoutMs: flags["kvstore-healthcheck-timeout"],
      readyTimeoutMs: flags["kvstore-readycheck-timeout"],
    },
    agents: {
      clientCertificate: pair(flags["svclet-client-certificate"], flags["svclet-client-key"]),
      certificateAuthorityFile: set(flags["svclet-certificate-authority"]),
      timeoutMs: flags["svclet-timeout"],
      preferredAddressTypes: flags["svclet-preferred-address-types"],
    },
    limits: {
      requestTimeoutMs: flags["request-timeout"],
      minRequestTimeoutMs: flags["min-request-timeout"] * 1000,
      shutdownDelayMs: flags["shutdown-delay-duration"],
    },
    gitVersion,
    groupAliases: flags["api-group-aliases"] !== "",
    garbageCollector: flags["enable-garbage-collector"],
    watchList: gates.has("WatchList"),
    embeddedControllers: flags["embedded-controllers"],
  };
}

function set(text: string): string | undefined {
  return text === "" ? undefined : text;
}

function pair(certFile: string, keyFile: string) {
  return certFile === "" ? undefined : { certFile, keyFile };
}

function storeUrl(servers: readonly string[]): string {
  const [first = DEFAULT_STORE, ...more] = servers;
  if (/^https?:/.test(first)) {
    throw new Error(
      `Cannot use --kvstore-servers=${first}: this build keeps its own store, level:///path or memory://`,
    );
  }
  if (more.length > 0)
    throw new Error(`Cannot use --kvstore-servers=${servers.join(",")}: one embedded store is enough`);
  return first;
}
