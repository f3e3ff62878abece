/** Metrics with the names that CoreDNS gives them, which dashboards of clusters use. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { recordType } from "../wire/constants.ts";
import type { Protocol } from "../wire/response.ts";

/** Where an answer came from: the cluster's records, or another server. */
export type AnswerSource = "kubernetes" | "forward" | "";

/** `server` and `zone` as CoreDNS shows them for one server of all zones. */
const SERVER = "dns://:53";
const ROOT = ".";
const SECONDS = [
  0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
];

const typeNames: ReadonlyMap<number, string> = new Map(
  Object.entries(recordType).map(([name, number]) => [number, name.toUpperCase()]),
);
const rcodeNames: Readonly<Record<number, string>> = {
  0: "NOERROR",
  1: "FORMERR",
  2: "SERVFAIL",
  3: "NXDOMAIN",
  4: "NOTIMP",
  5: "REFUSED",
  16: "BADVERS",
};

export function createDnsMetrics(registry: MetricRegistry) {
  const requests = registry.counter({
    name: "coredns_dns_requests_total",
    help: "Counter of DNS requests made per zone, protocol and family.",
    labels: ["server", "zone", "view", "proto", "family", "type"],
  });
  const responses = registry.counter({
    name: "coredns_dns_responses_total",
    help: "Counter of response status codes.",
    labels: ["server", "zone", "view", "rcode", "plugin"],
  });
  const durations = registry.histogram(
    {
      name: "coredns_dns_request_duration_seconds",
      help: "Histogram of the time (in seconds) each request took per zone.",
      labels: ["server", "zone", "view"],
    },
    SECONDS,
  );
  const hits = registry.counter({
    name: "coredns_cache_hits_total",
    help: "The count of cache hits.",
    labels: ["server", "type", "zones", "view"],
  });
  const misses = registry.counter({
    name: "coredns_cache_misses_total",
    help: "The count of cache misses.",
    labels: ["server", "zones", "view"],
  });
  const entries = registry.gauge({
    name: "coredns_cache_entries",
    help: "The number of elements in the cache.",
    labels: ["server", "type", "zones", "view"],
  });
  const exchanges = registry.histogram(
    {
      name: "coredns_proxy_request_duration_seconds",
      help: "Histogram of the time each request took.",
      labels: ["proxy_name", "to", "rcode"],
    },
    SECONDS,
  );
  const dropped = registry.counter({
    name: "svc_dns_dropped_total",
    help: "Messages that got no response, by reason.",
    labels: ["reason"],
  });
  const seconds = durations.with(SERVER, ROOT, "");
  const hit = hits.with(SERVER, "success", ROOT, "");
  const miss = misses.with(SERVER, ROOT, "");
  return {
    onRequest(protocol: Protocol, isIPv6: boolean, type: number): void {
      requests.with(SERVER, ROOT, "", protocol, isIPv6 ? "2" : "1", typeNames.get(type) ?? "other").inc();
    },
    onResponse(code: number, source: AnswerSource, milliseconds: number): void {
      responses.with(SERVER, ROOT, "", rcodeNames[code] ?? String(code), source).inc();
      seconds.observe(milliseconds / 1000);
    },
    onCache(isHit: boolean): void {
      (isHit ? hit : miss).inc();
    },
    onExchange(server: string, code: number | undefined, milliseconds: number): void {
      const name = code === undefined ? "error" : (rcodeNames[code] ?? String(code));
      exchanges.with("forward", server, name).observe(milliseconds / 1000);
    },
    onDrop: (reason: "overload" | "malformed"): void => dropped.with(reason).inc(),
    showEntries(count: () => number): void {
      registry.onCollect(() => entries.with(SERVER, "success", ROOT, "").set(count()));
    },
  };
}

export type DnsMetrics = ReturnType<typeof createDnsMetrics>;
