import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";

t.test("workers record their start, and how long each sync takes", async (t) => {
  const registry = new MetricRegistry();
  await using at = await podHarness();
  Object.assign(at.services, { metrics: createWorkerMetrics(registry) });
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(130);
  const read = (name: string): number =>
    Number(new RegExp(`^kubelet_${name} (\\S+)$`, "m").exec(formatMetrics([registry], "prometheus"))?.[1] ?? 0);
  t.equal(read("pod_worker_start_duration_seconds_count"), 1);
  t.equal(read('pod_worker_duration_seconds_count{operation_type="create"}'), 1);
  const syncs = read('pod_worker_duration_seconds_count{operation_type="sync"}');
  t.ok(syncs > 0);
  const seconds = read('pod_worker_duration_seconds_sum{operation_type="sync"}');
  t.ok(seconds < 2, `${seconds} s, without the time between syncs`);
  at.manager.put({ ...pod, metadata: { ...pod.metadata, labels: { changed: "yes" } } });
  await at.run(5);
  t.ok(read('pod_worker_duration_seconds_count{operation_type="update"}') > 0);
});
