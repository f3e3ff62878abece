import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { MetricRegistry } from "../metrics/metrics.ts";
import { formatMetrics } from "../metrics/text-format.ts";
import { createSyncMetrics } from "./sync-metrics.ts";

t.test("createSyncMetrics() counts updates and failures", async (t) => {
  const registry = new MetricRegistry();
  const metric = (name: string) => ({ name, help: name });
  const names = { duration: metric("sync_seconds"), last: metric("last_seconds"), failures: metric("failures_total") };
  const metrics = createSyncMetrics(registry, new FakeClock(5000), names);
  metrics.recordSync(0.003);
  metrics.recordFailure();
  metrics.recordFailure();
  const text = formatMetrics([registry], "prometheus");
  for (const line of ["sync_seconds_count 1", "sync_seconds_sum 0.003", "last_seconds 5", "failures_total 2"]) {
    t.ok(text.includes(`\n${line}\n`), line);
  }
});
