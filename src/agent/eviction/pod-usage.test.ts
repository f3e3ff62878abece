import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { ObservedContainer, ObservedSandbox } from "../runtime/observation.ts";
import { createCgroupReader } from "../stats/cgroup-reader.ts";
import type { StatsPod } from "../stats/stats-targets.ts";
import { measurePods, type PodUsageOptions } from "./pod-usage.ts";

const settings = { cgroupDriver: "cgroupfs", cgroupRoot: "", cgroupsPerQos: true } as const;

function makePod(name: string, state: ObservedContainer["state"] = "running"): StatsPod {
  const volumes = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "map", configMap: {} },
    { name: "secret", secret: {} },
  ];
  const pod: Pod = {
    metadata: { name, namespace: "default", uid: name },
    spec: { containers: [{ name: "c" }], volumes },
  };
  const container = { id: `${name}-c`, name: "c", state } as ObservedContainer;
  const sandbox = { id: `${name}-s`, ready: state === "running" } as ObservedSandbox;
  return { pod, observation: { sandboxes: [sandbox], containers: [container] } };
}

function createOptions(hierarchy: string): PodUsageOptions & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    settings,
    cgroups: createCgroupReader(hierarchy, true, new FakeClock()),
    runtime: {
      async listContainerStats() {
        calls.push("listContainerStats");
        const writableLayer = { usedBytes: { value: 10n }, inodesUsed: { value: 1n } };
        const memory = { workingSetBytes: { value: 77n } };
        return { stats: [{ attributes: { id: "a-c" }, writableLayer, memory }] };
      },
    },
    volumes: { path: (pod, volume) => `${pod.metadata?.name}/${volume.name}` },
    directories: { rootDir: "/agent", podLogsDir: "/logs" },
    async measure(path) {
      calls.push(path);
      if (path.endsWith("/map")) throw new Error("it does not exist");
      return path.startsWith("/logs") ? { usedBytes: 100, inodesUsed: 2 } : { usedBytes: 1000, inodesUsed: 3 };
    },
  };
}

t.test("measurePods() reads memory and processes from cgroups, without the runtime", async (t) => {
  const hierarchy = t.testdir();
  const pod = join(hierarchy, "kubepods/besteffort/poda");
  for (const [path, memory] of [
    [pod, 500],
    [join(pod, "a-c"), 400],
  ] as const) {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, "cpu.stat"), "usage_usec 1\n");
    writeFileSync(join(path, "memory.stat"), "inactive_file 50\n");
    writeFileSync(join(path, "memory.current"), String(memory));
    writeFileSync(join(path, "pids.current"), "9\n");
  }
  const options = createOptions(hierarchy);
  const found = await measurePods(options, [makePod("a"), makePod("b", "exited")], "memory");
  t.same([...found.keys()], ["a"], "nothing of the other pod runs");
  t.match(found.get("a"), { memory: 450, processes: 9, containers: [{ name: "c", memory: 350 }] });
  t.same(options.calls, []);
});

t.test("measurePods() measures layers, logs and volumes on disk", async (t) => {
  const options = createOptions(t.testdir());
  const found = await measurePods(options, [makePod("a")], "ephemeral-storage");
  t.match(found.get("a"), {
    containers: [{ root: { usedBytes: 10, inodesUsed: 1 }, logs: { usedBytes: 100, inodesUsed: 2 } }],
    volumes: { usedBytes: 1000, inodesUsed: 3 },
  });
  t.same(options.calls, ["listContainerStats", "/logs/default_a_a/c", "a/disk", "a/map"]);
});

t.test("measurePods() takes the runtime's figures where pods have no cgroups", async (t) => {
  const options = { ...createOptions(t.testdir()), settings: { ...settings, cgroupsPerQos: false } };
  const found = await measurePods(options, [makePod("a")], "memory");
  t.match(found.get("a"), { memory: 77, containers: [{ memory: 77 }] });
});
