/** Flags that the control plane programs, controller manager and scheduler, have in common. */
import { flag, section } from "../flags/flag.ts";
import { duration } from "../flags/types/duration.ts";
import { strings } from "../flags/types/list.ts";
import { vmodule } from "../flags/types/logging.ts";
import { metricLabels } from "../flags/types/metric-labels.ts";
import { ipOrNone } from "../flags/types/network.ts";
import { float, int, int32, level, port } from "../flags/types/number.ts";
import { bytes } from "../flags/types/quantity.ts";
import { bool, directory, file, minorVersion, oneOf, text, version } from "../flags/types/text.ts";
import { sniCertificates, suites, tlsVersion } from "../flags/types/tls.ts";

const REQUEST_HEADER = "clients are authenticated by their own certificates and tokens only";

const NO_LOOKUP = "what clients present is configured by the other flags only";

function requestHeader(meaning: string) {
  return flag(strings({ sample: "x-remote-user" }), [], meaning, { redundant: REQUEST_HEADER });
}

export const connectionFlags = section("API server", {
  kubeconfig: flag(file, "", "Kubeconfig file of the API server; without it, the service account of the pod.", {
    defaultNote: "the pod's service account",
  }),
  master: flag(text, "", "URL of the API server; replaces that of the kubeconfig file."),
  "kube-api-qps": flag(float({}), 20, "Requests a second to the API server, on average; no limit if not positive."),
  "kube-api-burst": flag(int32({ min: 0 }), 30, "Requests to the API server at once, after a pause."),
  "kube-api-content-type": flag(
    oneOf("application/vnd.kubernetes.protobuf", "application/vnd.svc.protobuf", "application/json"),
    "application/vnd.kubernetes.protobuf",
    "Content type of objects that are sent to the API server.",
  ),
});

export function servingFlags(securePort: number) {
  return section("Serving", {
    "bind-address": flag(ipOrNone, "0.0.0.0", "Listen address for --secure-port; blank, 0.0.0.0 or :: means all."),
    "secure-port": flag(
      port("int", "zero-disables"),
      securePort,
      "HTTPS port for health, metrics and profiles, with authentication and authorization.",
    ),
    "cert-dir": flag(directory, "", "Directory of a self-signed certificate, which is created if there is none.", {
      defaultNote: "a certificate in memory",
    }),
    "tls-cert-file": flag(file, "", "Serving certificate, with its CA after it.", {
      requires: ["tls-private-key-file"],
    }),
    "tls-private-key-file": flag(file, "", "Key of that certificate.", { requires: ["tls-cert-file"] }),
    "tls-sni-cert-key": flag(
      sniCertificates,
      [],
      "Certificate and key for other host names; repeatable. Without names those of the certificate count.",
    ),
    "tls-cipher-suites": flag(suites("strings"), [], "Cipher suites the server offers, comma-separated."),
    "tls-min-version": flag(tlsVersion, "", "Lowest TLS version that the server accepts."),
    "client-ca-file": flag(file, "", "CA of the certificates of clients; without it none are accepted."),
    "authentication-kubeconfig": flag(
      file,
      "",
      "Kubeconfig file of the API server that verifies tokens; without it none are accepted.",
    ),
    "authentication-skip-lookup": flag(bool, false, "Do not read the configuration of authentication in the cluster.", {
      redundant: NO_LOOKUP,
    }),
    "authentication-tolerate-lookup-failure": flag(bool, false, "Start without that configuration.", {
      redundant: NO_LOOKUP,
    }),
    "authentication-token-webhook-cache-ttl": flag(
      duration({ min: 0 }),
      10_000,
      "How long the results of token reviews are cached.",
      { requires: ["authentication-kubeconfig"] },
    ),
    "authorization-kubeconfig": flag(
      file,
      "",
      "Kubeconfig file of the API server that authorizes clients; without it only --authorization-always-allow-paths " +
        "are served.",
    ),
    "authorization-webhook-cache-authorized-ttl": flag(
      duration({ min: 0 }),
      10_000,
      "How long permissions are cached.",
      {
        requires: ["authorization-kubeconfig"],
      },
    ),
    "authorization-webhook-cache-unauthorized-ttl": flag(duration({ min: 0 }), 10_000, "How long denials are cached.", {
      requires: ["authorization-kubeconfig"],
    }),
    "authorization-always-allow-paths": flag(
      strings({ sample: "/healthz,/metrics" }),
      ["/healthz", "/readyz", "/livez"],
      "Paths that are served to everyone; * at the end stands for any rest.",
    ),
    "requestheader-client-ca-file": flag(file, "", "CA of the certificates of authenticating proxies.", {
      redundant: REQUEST_HEADER,
    }),
    "requestheader-allowed-names": requestHeader("Names in their certificates."),
    "requestheader-username-headers": requestHeader("Headers with the name of the user."),
    "requestheader-uid-headers": requestHeader("Headers with the UID of the user."),
    "requestheader-group-headers": requestHeader("Headers with groups of the user."),
    "requestheader-extra-headers-prefix": requestHeader("Prefixes of headers with other attributes of the user."),
    "disable-http2-serving": flag(bool, false, "Disable HTTP/2."),
    "http2-max-streams-per-connection": flag(
      int({ min: 0 }),
      0,
      "Requests at once on a connection that clients are offered; 0 means 100.",
    ),
    "permit-address-sharing": flag(bool, false, "Bind with SO_REUSEADDR.", {
      redundant: "Node.js always binds with SO_REUSEADDR on Linux",
    }),
    "permit-port-sharing": flag(bool, false, "Bind with SO_REUSEPORT."),
    profiling: flag(bool, true, "Serve profiles below /debug/pprof/."),
    "contention-profiling": flag(bool, false, "Serve the delays of the event loop as block profile with --profiling."),
  });
}

export const metricsFlags = section("Metrics", {
  "allow-metric-labels": flag(
    metricLabels,
    {},
    "METRIC,LABEL=VALUE,VALUE: the values that the label has; others are shown as unexpected. Repeatable.",
  ),
  "allow-metric-labels-manifest": flag(file, "", "File with the same mapping; the flag overrides it."),
  "disabled-metrics": flag(strings(), [], "Metrics that are not served, by their full names."),
  "show-hidden-metrics-for-version": flag(
    minorVersion,
    "",
    "The previous minor version, whose deprecated metrics are still served.",
  ),
});

export function leaderElectionFlags(name: string) {
  return section("Leader election", {
    "leader-elect": flag(bool, true, "Work only while this instance holds the lease; others wait for it."),
    "leader-elect-lease-duration": flag(
      duration({ min: 1000 }),
      15_000,
      "How long other instances wait for a renewal of the lease before they take it.",
    ),
    "leader-elect-renew-deadline": flag(
      duration({ min: 1 }),
      10_000,
      "How long the leader tries to renew the lease before it gives up; less than the lease duration.",
    ),
    "leader-elect-retry-period": flag(duration({ min: 1 }), 2_000, "How often the lease is read or renewed."),
    "leader-elect-resource-lock": flag(oneOf("leases"), "leases", "Type of the object that is the lock."),
    "leader-elect-resource-name": flag(text, name, "Name of the lease."),
    "leader-elect-resource-namespace": flag(text, "kube-system", "Namespace of the lease."),
  });
}

export const loggingFlags = section("Logging", {
  v: flag(level, 0, "Log verbosity; --vmodule sets it for single modules.", { short: "v" }),
  vmodule: flag(vmodule, [], "Log verbosity of single modules, in text format only."),
  "logging-format": flag(oneOf("text", "json"), "text", "Log format."),
  "log-flush-frequency": flag(duration({ min: 1 }), 5000, "Max time between log flushes."),
  "log-text-split-stream": flag(bool, false, "Write errors to stderr and the rest to stdout, in text format."),
  "log-text-info-buffer-size": flag(
    bytes("quantity"),
    0,
    "Bytes of lines that --log-text-split-stream collects before it writes them to stdout; 0 writes at once.",
  ),
  "log-json-split-stream": flag(bool, false, "Write errors to stderr and the rest to stdout, in JSON."),
  "log-json-info-buffer-size": flag(
    bytes("quantity"),
    0,
    "Bytes of lines that --log-json-split-stream collects before it writes them to stdout; 0 writes at once.",
  ),
});

export const otherFlags = section("Other", {
  version: flag(version, "", "Print the version and exit; --version=vX.Y.Z... sets the reported version."),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

interface LeaderElectionValues {
  readonly "leader-elect": boolean;
  readonly "leader-elect-lease-duration": number;
  readonly "leader-elect-renew-deadline": number;
  readonly "leader-elect-retry-period": number;
}

/** One sentence for each problem, as in client-go. */
export function validateLeaderElection(flags: LeaderElectionValues): readonly string[] {
  if (!flags["leader-elect"]) return [];
  const problems: string[] = [];
  const deadline = flags["leader-elect-renew-deadline"];
  if (flags["leader-elect-lease-duration"] <= deadline) {
    problems.push("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline");
  }
  if (deadline <= flags["leader-elect-retry-period"] * 1.2) {
    problems.push("--leader-elect-renew-deadline must be greater than 1.2 times --leader-elect-retry-period");
  }
  return problems;
}
