import { flag, section } from "../../flags/flag.ts";
import { strings } from "../../flags/types/list.ts";
import { cidrs, ipOrNone, portRange } from "../../flags/types/network.ts";
import { float, int, port } from "../../flags/types/number.ts";
import { bool, file, oneOf, requiredDirectory, text } from "../../flags/types/text.ts";
import { sniCertificates, suites, tlsVersion } from "../../flags/types/tls.ts";
import { isHstsDirective, isOriginPattern, portText } from "./values.ts";

/** Of `svc up` as well. */
export const WORKERS =
  "Threads of the process that serve connections; the kernel spreads connections over them. Each takes about 40 MiB of " +
  "memory, and admits its part of the requests in flight.";

export const servingFlags = section("Serving, network and TLS", {
  "bind-address": flag(
    ipOrNone,
    "0.0.0.0",
    "Listen address for --secure-port; blank, 0.0.0.0 or :: means all interfaces and families.",
  ),
  "secure-port": flag(
    port("int", "no-zero"),
    6443,
    "HTTPS port with authentication and authorization; cannot be switched off with 0.",
  ),
  workers: flag(
    int({ min: 0, max: 64 }),
    0,
    `${WORKERS} 0 means one for each core with 512 MiB of memory for each, up to 4.`,
  ),
  "advertise-address": flag(
    ipOrNone,
    "",
    "Address advertised to cluster members; must be reachable; if blank uses --bind-address, then the host " +
      "default interface.",
  ),
  "external-hostname": flag(text, "", "Hostname for externalized URLs (API docs, discovery)."),
  "cert-dir": flag(
    requiredDirectory,
    "/var/run/svc",
    "TLS certificate directory; ignored when cert and key files are given.",
  ),
  "tls-cert-file": flag(
    file,
    "",
    "Default x509 certificate (CA appended). If absent with HTTPS on, a self-signed pair for the public " +
      "address is generated into --cert-dir.",
    { requires: ["tls-private-key-file"] },
  ),
  "tls-private-key-file": flag(file, "", "Key matching the certificate.", { requires: ["tls-cert-file"] }),
  "tls-sni-cert-key": flag(
    sniCertificates,
    [],
    "Certificate and key for other host names; repeatable. Names are domains, with a leading wildcard or " +
      "without, or IPs; without names those of the certificate count. Exact names win over wildcards.",
  ),
  "tls-cipher-suites": flag(suites("strings"), [], "Cipher suites the server offers, comma-separated."),
  "tls-min-version": flag(tlsVersion, "", "Lowest TLS version that the server accepts."),
  "strict-transport-security-directives": flag(
    strings({
      element: "max-age=SECONDS, includeSubDomains or preload",
      accepts: isHstsDirective,
      sample: "max-age=31536000,includeSubDomains",
      wrong: "max-age=long",
    }),
    [],
    "HSTS directives; empty adds no HSTS header.",
  ),
  "cors-allowed-origins": flag(
    strings({
      element: "a regular expression that starts with ^ or // and ends with $ or (:|$), so that it matches whole hosts",
      accepts: isOriginPattern,
      sample: "^https://example\\.com$",
      wrong: "example.com",
    }),
    [],
    "Allowed CORS origins, may be regular expressions anchored at both ends; empty disables CORS.",
  ),
  "disable-http2-serving": flag(bool, false, "Disable HTTP/2."),
  "http2-max-streams-per-connection": flag(
    int({ min: 0 }),
    0,
    "Stream limit advertised to clients; 0 uses the runtime default.",
  ),
  "goaway-chance": flag(
    float({ min: 0, max: 0.02 }),
    0,
    "Fraction of requests sent an HTTP/2 GOAWAY; range 0 (off) to 0.02; 0.001 suggested start; do not enable " +
      "for a single server or without a load balancer.",
  ),
  "permit-address-sharing": flag(bool, false, "Bind with SO_REUSEADDR.", {
    redundant: "Node.js always binds with SO_REUSEADDR on Linux",
  }),
  "permit-port-sharing": flag(bool, false, "Bind with SO_REUSEPORT."),
  "debug-socket-path": flag(file, "", "Unix socket path for unauthenticated profiling."),
  profiling: flag(bool, true, "Profiling via host:port/debug/pprof/."),
  "contention-profiling": flag(bool, false, "Block profiling when profiling is on."),
  "enable-aggregator-routing": flag(bool, false, "Route aggregator requests to endpoint IPs instead of cluster IP."),
  "aggregator-reject-forwarding-redirect": flag(bool, true, "Reject redirect responses forwarded back to the client."),
  "svc-service-node-port": flag(
    port("int", "zero-disables"),
    0,
    "Non-zero: the API server's own service is of type NodePort on this port; zero: ClusterIP.",
  ),
  "service-cluster-ip-range": flag(
    cidrs,
    [],
    "CIDR for service cluster IPs; must not overlap node or pod ranges; at most two (dual-stack) CIDRs.",
  ),
  "service-node-port-range": flag(
    portRange,
    { first: 30000, last: 32767 },
    "NodePort range, inclusive at both ends; must not overlap the nodes' ephemeral range.",
  ),
  "endpoint-reconciler-type": flag(
    oneOf("master-count", "lease", "none"),
    "lease",
    "master-count (deprecated), lease, none.",
  ),
  "peer-advertise-ip": flag(
    ipOrNone,
    "",
    "Address at which other API servers reach this one to proxy requests of versions they do not serve.",
    { gate: "UnknownVersionInteroperabilityProxy" },
  ),
  "peer-advertise-port": flag(portText, "", "Port at which other API servers reach this one to proxy requests.", {
    gate: "UnknownVersionInteroperabilityProxy",
  }),
  "peer-ca-file": flag(file, "", "CA that verifies the serving certificates of other API servers.", {
    gate: "UnknownVersionInteroperabilityProxy",
  }),
});
