import t from "tap";
import type { PodStatus } from "../../api/core/pod/schema.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { testPod } from "../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { PodStartMetrics } from "./pod-metrics.ts";

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString();

t.test("PodStartMetrics subtracts pulls and init containers from the start of a pod", async (t) => {
  const registry = new MetricRegistry();
  const clock = new FakeClock(1_700_000_000_000);
  const metrics = new PodStartMetrics(registry, clock);
  const created = clock.now();
  const pod = testPod("web");
  const known = { ...pod, metadata: { ...pod.metadata, creationTimestamp: iso(created) } };
  metrics.onStatus(known, { phase: "Pending" });
  await clock.advance(4_000);
  metrics.onPulled(known, 5 * 2 ** 20, 3_000);
  await clock.advance(3_000);
  metrics.onPulled(known, 200 * 2 ** 20, 2_000);
  await clock.advance(5_000);
  const terminated = { exitCode: 0, startedAt: iso(created + 7_000), finishedAt: iso(created + 11_000) };
  const containerStatus = { name: "c", ready: true, restartCount: 0, image: "", imageID: "", started: true };
  const running: PodStatus = {
    phase: "Running",
    initContainerStatuses: [{ ...containerStatus, name: "i", state: { terminated } }],
    containerStatuses: [containerStatus],
  };
  metrics.onStatus(known, running);
  metrics.onStatus(known, running);
  const text = formatMetrics([registry], "prometheus");
  const read = (name: string): number => Number(new RegExp(`^kubelet_${name} (\\S+)$`, "m").exec(text)?.[1]);
  t.equal(read("pod_start_total_duration_seconds_sum"), 12);
  t.equal(
    read("pod_start_sli_duration_seconds_sum"),
    2,
    "pulls took 6 s from the first to the last, init containers 4",
  );
  t.equal(read("pod_start_sli_duration_seconds_count"), 1);
  t.equal(read("first_network_pod_start_sli_duration_seconds"), 2);
  t.equal(read('image_pull_duration_seconds_sum{image_size_in_bytes="0-10MB"}'), 3);
  t.equal(read('image_pull_duration_seconds_sum{image_size_in_bytes="100MB-500MB"}'), 2);
});
