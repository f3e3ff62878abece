import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { systemClock } from "../../std/time/clock.ts";
import { withClientMetrics } from "../client-metrics.ts";
import { makeRequest } from "../request.ts";
import { textResponse } from "../respond.ts";
import { flagz, statusz } from "../zpages.ts";
import { metricsResponse, resetMetrics } from "./metrics-page.ts";

t.test("metricsResponse() serves Prometheus' text unless the client accepts OpenMetrics", async (t) => {
  const registry = new MetricRegistry();
  registry.counter({ name: "a_total", help: "A." }).with().inc();
  const text = (accept?: string) => String(metricsResponse([registry], accept).body);
  t.match(text(), /^# HELP a_total A\.\n# TYPE a_total counter\na_total 1\n$/);
  t.match(text("image/png"), /a_total 1\n$/);
  t.match(text("application/openmetrics-text;version=1.0.0"), /a_total 1\.0\n# EOF\n$/);
  t.equal(resetMetrics([registry]).status, 200);
  t.match(text(), /a_total 0\n$/);
});

t.test("withClientMetrics() counts requests by method, host and status code", async (t) => {
  const registry = new MetricRegistry();
  let fails = false;
  const client = withClientMetrics(
    async () => {
      if (fails) throw new Error("cannot connect");
      return textResponse(404, "");
    },
    registry,
    () => "10.0.0.1:6443",
    systemClock,
  );
  await client(makeRequest({ path: "/" }));
  fails = true;
  await t.rejects(client(makeRequest({ path: "/" })), /cannot connect/);
  const text = String(metricsResponse([registry], undefined).body);
  t.match(text, 'rest_client_request_duration_seconds_count{host="10.0.0.1:6443",verb="GET"} 2\n');
  t.match(text, 'rest_client_requests_total{code="404",host="10.0.0.1:6443",method="GET"} 1\n');
  t.match(text, 'rest_client_requests_total{code="<error>",host="10.0.0.1:6443",method="GET"} 1\n');
});

t.test("flagz() and statusz() serve plain text only", async (t) => {
  const request = (accept?: string) =>
    makeRequest({ path: "/", ...(accept === undefined ? {} : { headers: { accept } }) });
  const flags = { b: "2", a: "1" };
  t.match(
    String(flagz("svclet flags", flags, request("text/plain")).body),
    /^\nsvclet flags\nWarning: [^\n]+\n\na=1\nb=2\n$/,
  );
  for (const [accept, expected] of [
    [undefined, 406],
    ["application/json", 406],
    ["text/plain;version=0.0.4", 406],
    ["text/plain;charset=UTF-8", 200],
    ["text/plain;charset=utf-8;a=b", 406],
    ["text/html, text/*;q=0", 200],
    ["*", 200],
  ] as const) {
    t.equal(flagz("svclet flags", flags, request(accept)).status, expected, String(accept));
  }
  const status = {
    startedMs: 0,
    nowMs: 3_723_000,
    runtimeVersion: "node26",
    binaryVersion: "1.33.0",
    emulationVersion: "1.33",
    paths: [],
  };
  const page = String(statusz("svclet", status, request("*/*")).body);
  t.match(page, "Started: Thu Jan  1 00:00:00 UTC 1970\nUp: 1 hr 02 min 03 sec\n");
});
