import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { podUid } from "../pods/pod-fields.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { createCgroupReader } from "./cgroup-reader.ts";
import { createFigures } from "./figures.ts";

const machine = {
  bootId: "boot",
  machineId: "machine",
  systemUuid: "system",
  cpus: 2,
  memoryBytes: 2 ** 30,
  kernelVersion: "6.1.0",
  osImage: "Linux",
  architecture: "amd64",
  swapBytes: 0,
  hugePages: {},
};

const value = (number: number) => ({ value: BigInt(number) });
const AT_NS = 1_700_000_000_000_000_000n;
const AT = "2023-11-14T22:13:20.000Z";

/** A pod with one container, whose cgroups have files with other figures than the runtime reports. */
async function measuredPod(t: Test, runtimeMeasures: boolean) {
  const at = await podHarness();
  t.teardown(() => at[Symbol.asyncDispose]());
  const pod = testPod("web");
  at.manager.put(pod);
  await at.run(1);
  const [container] = [...at.fake.containers.values()];
  const [sandbox] = [...at.fake.sandboxes.values()];
  const hierarchy = t.testdir();
  const uid = podUid(pod);
  for (const name of ["", `/${sandbox?.id}`, `/${container?.id}`]) {
    const directory = join(hierarchy, `kubepods/besteffort/pod${uid}${name}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "cpu.stat"), "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
    writeFileSync(join(directory, "memory.current"), "111\n");
    writeFileSync(join(directory, "memory.stat"), "inactive_file 0\n");
  }
  const figures = createFigures(
    { registry: new MetricRegistry(), probes: new MetricRegistry() },
    {
      nodeName: "n1",
      pods: () => at.manager.workers,
      settings: { ...at.services.settings.cgroups, cgroupsPerQos: true },
      cgroups: createCgroupReader(hierarchy, true, at.clock),
      machine,
      runtime: at.fake.runtime,
      images: at.fake.images,
      volumes: at.services.volumes,
      volumeStatsMs: undefined,
      rootDir: at.rootDir,
      podLogsDir: at.rootDir,
      clock: at.clock,
      runtimeMeasures,
    },
  );
  const measure = () => {
    const cpu = { timestamp: AT_NS, usageCoreNanoSeconds: value(5_000_000_000) };
    const memory = { timestamp: AT_NS, workingSetBytes: value(700), usageBytes: value(900), rssBytes: value(500) };
    const network = { defaultInterface: { name: "eth0", rxBytes: value(42), txBytes: value(43) } };
    const own = { attributes: { id: container?.id ?? "" }, cpu, memory, swap: { swapUsageBytes: value(3) } };
    const process = { processCount: value(4) };
    at.fake.measured = {
      stats: [
        {
          attributes: { id: sandbox?.id ?? "", metadata: { uid, name: "web", namespace: "default" } },
          linux: { cpu, memory: { ...memory, workingSetBytes: value(800) }, network, process, containers: [own] },
        },
      ],
      descriptors: [
        { name: "container_memory_usage_bytes", help: "Current memory usage", labelKeys: ["id", "pod"] },
        { name: "container_oom_events_total", help: "Count of out of memory events", labelKeys: ["id"] },
      ],
      podMetrics: [
        {
          podSandboxId: sandbox?.id ?? "",
          metrics: [{ name: "container_oom_events_total", labelValues: ["s"], value: value(1), metricType: "COUNTER" }],
          containerMetrics: [
            {
              containerId: "c",
              metrics: [
                {
                  name: "container_memory_usage_bytes",
                  labelValues: ["c", "web"],
                  value: value(900),
                  timestamp: AT_NS,
                  metricType: "GAUGE",
                },
                { name: "container_oom_events_total", labelValues: ["too", "many"], value: value(1) },
              ],
            },
          ],
        },
      ],
    };
  };
  return { at, figures, measure };
}

interface SummaryPod {
  readonly containers: readonly object[];
}

async function readPod(figures: ReturnType<typeof createFigures>): Promise<SummaryPod | undefined> {
  return ((await figures.readSummary(false)) as { readonly pods: readonly SummaryPod[] }).pods[0];
}

t.test("with the runtime's figures, /stats/summary and /metrics/resource have those", async (t) => {
  const { figures, measure } = await measuredPod(t, true);
  measure();
  t.match(await readPod(figures), {
    cpu: { time: AT, usageCoreNanoSeconds: 5_000_000_000 },
    memory: { time: AT, workingSetBytes: 800, usageBytes: 900, rssBytes: 500 },
    network: { name: "eth0", rxBytes: 42, txBytes: 43 },
    containers: [{ name: "c", cpu: { usageCoreNanoSeconds: 5_000_000_000 }, memory: { workingSetBytes: 700 } }],
  });
  const resources = await figures.renderResources();
  t.match(resources, /^container_memory_working_set_bytes\{container="c",.*\} 700 1700000000000$/m);
  t.match(resources, /^pod_memory_working_set_bytes\{.*pod="web"\} 800 1700000000000$/m);
});

t.test("with the runtime's metrics, /metrics/cadvisor has its families in place of the agent's", async (t) => {
  const { figures, measure } = await measuredPod(t, true);
  measure();
  const text = await figures.renderContainers();
  const families = text.split("\n").filter((line) => /^container_(?!scrape_error)/.test(line));
  t.same(families, [
    'container_memory_usage_bytes{id="c",pod="web"} 900 1700000000000',
    'container_oom_events_total{id="s"} 1',
  ]);
  t.match(text, "# TYPE container_memory_usage_bytes gauge\n");
  t.match(text, "# HELP container_oom_events_total Count of out of memory events\n");
  t.match(text, /^machine_cpu_cores\{.*\} 2$/m);
});

t.test("without the gate, and with a runtime that measures nothing, the agent reads cgroups", async (t) => {
  for (const runtimeMeasures of [false, true]) {
    const { figures, measure } = await measuredPod(t, runtimeMeasures);
    if (!runtimeMeasures) measure();
    t.match(await readPod(figures), { containers: [{ memory: { usageBytes: 111 } }] });
    t.match(await figures.renderResources(), /^container_memory_working_set_bytes\{container="c",.*\} 111 /m);
    t.match(await figures.renderContainers(), /^container_memory_usage_bytes\{container="c",.*\} 111 /m);
  }
});

t.test("an error of the runtime rejects the summary, as without the gate", async (t) => {
  const { at, figures, measure } = await measuredPod(t, true);
  measure();
  at.fake.fail("listPodSandboxStats", new RuntimeError("UNAVAILABLE", "gone"));
  await t.rejects(figures.readSummary(true), { code: "UNAVAILABLE" });
});
