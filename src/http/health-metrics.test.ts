import t from "tap";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { formatMetrics } from "../std/metrics/text-format.ts";
import { registerHealthMetrics } from "./health-metrics.ts";

t.test("registerHealthMetrics() reports the last result of each check, and counts them all", async (t) => {
  const registry = new MetricRegistry();
  const observe = registerHealthMetrics(registry);
  observe("healthz", "ping", true);
  observe("healthz", "ping", false);
  const text = formatMetrics([registry], "prometheus");
  t.match(text, 'kubernetes_healthcheck{name="ping",type="healthz"} 0\n');
  for (const status of ["success", "error"]) {
    t.match(text, `kubernetes_healthchecks_total{name="ping",status="${status}",type="healthz"} 1\n`);
  }
});
