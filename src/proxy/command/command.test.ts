import { get } from "node:http";
import t from "tap";
import { invoke } from "../../flags/program.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createHealthMetrics, createProxyMetrics } from "../proxy-metrics.ts";
import { parseSocketAddress, proxyProgram } from "./flags.ts";
import { healthPages, metricsPages, servePages } from "./pages.ts";

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

function fetchPage(port: number, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
      let body = "";
      response.on("data", (data) => {
        body += data;
      });
      response.on("end", () => resolve({ status: response.statusCode, body }));
    }).on("error", reject);
  });
}

t.test("parseSocketAddress() reads IPv4 and IPv6 addresses with a port", async (t) => {
  t.same(parseSocketAddress("127.0.0.1:10256"), { host: "127.0.0.1", port: 10256 });
  t.same(parseSocketAddress("[::]:80"), { host: "::", port: 80 });
  for (const text of ["localhost:80", "127.0.0.1", "127.0.0.1:70000", "::1:80"]) {
    t.equal(parseSocketAddress(text), undefined, text);
  }
});

t.test("svc proxy refuses an address without a port, and prints its help", async (t) => {
  const refused = invoke(proxyProgram, ["--healthz-bind-address=localhost"], { version: "v1.33.0" });
  t.match(refused, { kind: "exit", code: 1, stderr: /healthz-bind-address/ });
  t.match(invoke(proxyProgram, ["--help"], { version: "v1.33.0" }), {
    kind: "exit",
    code: 0,
    stdout: /--cluster-cidr/,
  });
});

t.test("svc proxy accepts the feature gates of other programs with a warning, and refuses unknown ones", async (t) => {
  const accepted = invoke(proxyProgram, ["--feature-gates=AllAlpha=true,WatchList=false"], { version: "v1.33.0" });
  t.match(accepted, { kind: "run", warnings: [/AllAlpha/, /^Feature gate WatchList=false has no effect: /] });
  const refused = invoke(proxyProgram, ["--feature-gates=Nothing=true"], { version: "v1.33.0" });
  t.match(refused, { kind: "exit", code: 1, stderr: /Nothing/ });
});

t.test("/healthz is 200 while the rules are up to date and the node stays, and 503 otherwise", async (t) => {
  const updatedAt = Date.UTC(2025, 11, 31);
  const proxy = { isHealthy: true, isNodeEligible: true, lastUpdated: new Map([["IPv4" as const, updatedAt]]) };
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const address = { host: "127.0.0.1", port: 0 };
  const registry = new MetricRegistry();
  const pages = healthPages(proxy, clock, createHealthMetrics(registry));
  await using server = await servePages("--healthz-bind-address", address, { ...metricsPages(registry), ...pages });
  const time = "2026-01-01T00:00:00.000Z";
  const before = "2025-12-31T00:00:00.000Z";
  const json = (...[lastUpdated, nodeEligible, healthy]: readonly [string, boolean | undefined, boolean]) =>
    JSON.stringify({
      lastUpdated,
      currentTime: time,
      nodeEligible,
      healthy,
      status: { IPv4: { lastUpdated: before, healthy } },
    });
  t.same(await fetchPage(server.port, "/healthz"), { status: 200, body: json(time, true, true) });
  proxy.isNodeEligible = false;
  t.same(await fetchPage(server.port, "/healthz"), { status: 503, body: json(before, false, true) });
  const live = await fetchPage(server.port, "/livez");
  t.same(live, { status: 200, body: json(time, undefined, true) }, "a restart would not help");
  proxy.isHealthy = false;
  const failed = await fetchPage(server.port, "/livez?verbose");
  t.same(failed, { status: 503, body: json(before, undefined, false) });
  t.equal((await fetchPage(server.port, "/other")).status, 404);
  const { body: counts } = await fetchPage(server.port, "/metrics");
  t.match(counts, 'kubeproxy_proxy_healthz_total{code="200"} 1\n');
  t.match(counts, 'kubeproxy_proxy_healthz_total{code="503"} 1\n');
  t.match(counts, 'kubeproxy_proxy_livez_total{code="200"} 1\n');
  t.match(counts, 'kubeproxy_proxy_livez_total{code="503"} 1\n');
  const taken = servePages("--metrics-bind-address", { host: "127.0.0.1", port: server.port }, {});
  await t.rejects(taken, /--metrics-bind-address/, "a port in use is named with its flag");
});

t.test("/metrics has the changes, the duration of transactions and their failures", async (t) => {
  const registry = new MetricRegistry();
  const clock = new FakeClock(5000);
  const metrics = createProxyMetrics(registry, clock);
  metrics.recordServiceChange();
  metrics.recordEndpointChange(4000, "IPv4");
  metrics.recordEndpointChange(5000, "IPv4");
  metrics.recordEndpointChange(undefined, "IPv6");
  metrics.recordSyncStart();
  metrics.recordFamilyFailure("IPv6");
  metrics.recordSyncStart();
  // During the sync.
  metrics.recordEndpointChange(5000, "IPv4");
  await clock.advance(2500);
  metrics.recordFamilySync("IPv4", 0.02, true, { internal: 2, external: 1 });
  metrics.recordSync();
  metrics.recordDeletedFlows("IPv4", 0.01, 3);
  await using server = await servePages("--metrics", { host: "127.0.0.1", port: 0 }, metricsPages(registry));
  const { status, body } = await fetchPage(server.port, "/metrics");
  t.equal(status, 200);
  t.match(body, 'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1\n');
  t.match(body, 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 7.5\n');
  t.match(body, 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 5\n');
  t.match(body, "kubeproxy_sync_proxy_rules_service_changes_total 1\n");
  t.match(body, "kubeproxy_sync_proxy_rules_service_changes_pending 0\n");
  t.match(body, "kubeproxy_sync_proxy_rules_endpoint_changes_total 4\n");
  t.match(body, "kubeproxy_sync_proxy_rules_endpoint_changes_pending 1\n");
  t.match(body, 'kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1\n');
  t.match(body, 'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 2\n');
  t.match(body, 'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 1\n');
  t.match(
    body,
    'kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv4"} 2.5\n',
    "of changes after the start, written ones",
  );
  t.match(body, 'kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv6"} 1\n');
  t.match(body, 'kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"} 0\n');
  t.match(body, 'kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 3\n');
  t.match(body, 'kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family="IPv4"} 1\n');
  t.notMatch(body, /sync_partial_proxy_rules_duration_seconds_count/);
  t.same(await fetchPage(server.port, "/proxyMode"), { status: 200, body: "nftables" });
});
