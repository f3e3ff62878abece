import t from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { testPod } from "../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { FileSystems, readFileSystem } from "../stats/file-systems.ts";
import { VolumeMetrics } from "./volume-metrics.ts";

t.test("VolumeMetrics counts volumes by plugin, and reports the space in claims' volumes", async (t) => {
  const registry = new MetricRegistry();
  const volumes = [
    { name: "a", configMap: { name: "c" } },
    { name: "b", persistentVolumeClaim: { claimName: "data" } },
    { name: "c", persistentVolumeClaim: { claimName: "gone" } },
  ];
  const observation = { sandboxes: [], containers: [] };
  let pods = [{ pod: testPod("web", { volumes }), observation }];
  const path = (_pod: unknown, { name }: { readonly name: string }) => (name === "b" ? "/" : "/no/such/directory");
  const metrics = new VolumeMetrics(registry, {
    volumes: { path },
    fileSystems: new FileSystems(systemClock),
    clock: systemClock,
    pods: () => pods,
  });
  await metrics.refresh();
  const text = formatMetrics([registry], "prometheus");
  t.match(
    text,
    'volume_manager_total_volumes{plugin_name="kubernetes.io/configmap",state="desired_state_of_world"} 1\n',
  );
  t.match(text, 'volume_manager_total_volumes{plugin_name="kubernetes.io/csi",state="desired_state_of_world"} 2\n');
  t.match(text, /^kubelet_volume_stats_capacity_bytes\{namespace="default",persistentvolumeclaim="data"\} [1-9]/m);
  t.notMatch(text, "gone");
  pods = [];
  await metrics.refresh();
  t.notMatch(formatMetrics([registry], "prometheus"), /^(?:kubelet_volume_stats|volume_manager)/m);
});

t.test("VolumeMetrics reports which volumes of claims are abnormal, if conditions are read", async (t) => {
  const volumes = ["sick", "well", "silent"].map((name) => ({
    name,
    persistentVolumeClaim: { claimName: `${name}-claim` },
  }));
  const pods = () => [{ pod: testPod("web", { volumes }), observation: { sandboxes: [], containers: [] } }];
  const report = async (volumeHealth?: { isAbnormal: (_pod: unknown, name: string) => boolean | undefined }) => {
    const registry = new MetricRegistry();
    const fileSystems = new FileSystems(systemClock);
    const sources = { volumes: { path: () => "/" }, fileSystems, clock: systemClock, pods, volumeHealth };
    await new VolumeMetrics(registry, sources).refresh();
    const lines = formatMetrics([registry], "prometheus").split("\n");
    return lines.filter((line) => line.startsWith("kubelet_volume_stats_health_status_abnormal{"));
  };
  const conditions: Readonly<Record<string, boolean>> = { sick: true, well: false };
  const name = 'kubelet_volume_stats_health_status_abnormal{namespace="default",persistentvolumeclaim=';
  t.same(await report({ isAbnormal: (_pod, volume) => conditions[volume] }), [
    `${name}"sick-claim"} 1`,
    `${name}"well-claim"} 0`,
  ]);
  t.same(await report(), []);
});

t.test("FileSystems.read() begins no second read of a file system that does not respond", async (t) => {
  const clock = new FakeClock();
  const answer = Promise.withResolvers<void>();
  let reads = 0;
  const systems = new FileSystems(clock, async (path) => {
    reads++;
    await answer.promise;
    return await readFileSystem(path);
  });
  const first = systems.read("/");
  await clock.advance(1_000);
  t.equal(await first, undefined);
  const second = systems.read("/");
  answer.resolve();
  t.ok((await second)?.capacityBytes, "the first read has ended");
  t.equal(reads, 1);
  t.ok((await systems.read("/"))?.capacityBytes);
  t.equal(reads, 2);
});
