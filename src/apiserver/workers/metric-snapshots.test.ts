import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { mergeSnapshots, takeSnapshot } from "./metric-snapshots.ts";

function registry(requests: number, seconds: number): MetricRegistry {
  const metrics = new MetricRegistry();
  metrics
    .counter({ name: "requests_total", help: "h", labels: ["code"] })
    .with("200")
    .inc(requests);
  metrics
    .gauge({ name: "process_resident_memory_bytes", help: "h" })
    .with()
    .set(1000 + requests);
  metrics.gauge({ name: "in_flight", help: "h" }).with().set(requests);
  const durations = metrics.histogram({ name: "duration_seconds", help: "h" }, [1, 5]);
  durations.with().observe(seconds);
  return metrics;
}

t.test("mergeSnapshots() adds counters, gauges and histograms, but not what threads have in common", async (t) => {
  const other = structuredClone(takeSnapshot(registry(2, 3)));
  const merged = mergeSnapshots([takeSnapshot(registry(1, 0.5)), other]);
  const lines = formatMetrics([merged], "prometheus").split("\n");
  t.same(
    lines.filter((line) => line !== "" && !line.startsWith("#")),
    [
      'duration_seconds_bucket{le="1"} 1',
      'duration_seconds_bucket{le="5"} 2',
      'duration_seconds_bucket{le="+Inf"} 2',
      "duration_seconds_sum 3.5",
      "duration_seconds_count 2",
      "in_flight 3",
      "process_resident_memory_bytes 1002",
      'requests_total{code="200"} 3',
    ],
  );
});
