import t from "tap";
import type { ResourceReading, UsageSample } from "./resource-page.ts";
import { addReading, computePodUsage, computeUsage, formatWindow } from "./usage.ts";

const T0 = 1_700_000_000_000;

function sample(seconds: number, cpuSeconds: number, startSeconds = -1000): UsageSample {
  return { timeMs: T0 + seconds * 1000, cpuSeconds, memoryBytes: 11 * 2 ** 20, startMs: T0 + startSeconds * 1000 };
}

function reading(
  node: UsageSample | undefined,
  containers: Readonly<Record<string, UsageSample>> = {},
): ResourceReading {
  return { node, pods: new Map([["default/a", new Map(Object.entries(containers))]]) };
}

function read(...readings: readonly ResourceReading[]) {
  let samples: ReturnType<typeof addReading> | undefined;
  for (const each of readings) samples = addReading(samples, each);
  return { node: computeUsage(samples?.node), pod: computePodUsage(samples?.pods.get("default/a")) };
}

t.test("usage is the increase of CPU time between two samples, and the memory of the later one", async (t) => {
  t.equal(read(reading({ ...sample(0, 10), startMs: 0 })).node, undefined, "one sample has no rate");
  const { node } = read(reading({ ...sample(0, 10), startMs: 0 }), reading({ ...sample(15, 13.75), startMs: 0 }));
  t.same(node, { timeMs: T0 + 15_000, windowMs: 15_000, usage: { cpu: "250m", memory: "11Mi" } });
  t.match(read(reading(sample(0, 0.1)), reading(sample(15, 0.123456789))).node?.usage, { cpu: "1563785n" });
  t.equal(formatWindow(15_032.4), "15.032s");
});

t.test("a sample that is not later replaces the one before", async (t) => {
  const { node } = read(reading(sample(0, 10)), reading(sample(10, 20)), reading(sample(10, 20)));
  t.match(node, { windowMs: 10_000, usage: { cpu: "1" } });
  t.equal(read(reading(sample(0, 10)), reading(sample(0, 10))).node, undefined);
  t.equal(read(reading(sample(10, 10)), reading(sample(0, 5))).node, undefined, "the agent's clock was set back");
});

t.test("a node whose CPU time decreases has no usage until the next sample", async (t) => {
  const restarted = [reading(sample(0, 1000)), reading(sample(15, 2))] as const;
  t.equal(read(...restarted).node, undefined);
  t.match(read(...restarted, reading(sample(30, 17))).node?.usage, { cpu: "1" });
});

t.test("a pod has usage when each of its containers has two samples", async (t) => {
  const one = reading(undefined, { c: sample(0, 1) });
  const two = reading(undefined, { c: sample(15, 16), d: sample(16, 1) });
  const three = reading(undefined, { c: sample(30, 46), d: sample(31, 2.5) });
  t.equal(read(one).pod, undefined);
  t.equal(read(one, two).pod, undefined, "a container was added");
  t.match(read(one, two, three).pod, {
    timeMs: T0 + 30_000,
    windowMs: 15_000,
    containers: [
      { name: "c", usage: { cpu: "2", memory: "11Mi" } },
      { name: "d", usage: { cpu: "100m" } },
    ],
  });
  const gone = reading(undefined, { c: sample(30, 46) });
  t.match(read(one, two, gone).pod?.containers, [{ name: "c" }], "a container was removed");
  t.equal(read(one, { node: undefined, pods: new Map() }, two).pod, undefined, "the pod was absent in between");
});

t.test("a restarted container has no usage until its start is 10 s ago", async (t) => {
  const before = [reading(undefined, { c: sample(0, 100) }), reading(undefined, { c: sample(15, 115) })];
  t.equal(read(...before, reading(undefined, { c: sample(30, 1, 28) })).pod, undefined);
  const fresh = read(...before, reading(undefined, { c: sample(30, 3, 18) })).pod;
  t.match(fresh, { windowMs: 12_000, containers: [{ usage: { cpu: "250m" } }] });
  const older = read(
    ...before,
    reading(undefined, { c: sample(40, 1, 20) }),
    reading(undefined, { c: sample(55, 16, 20) }),
  );
  t.match(older.pod, { windowMs: 15_000, containers: [{ usage: { cpu: "1" } }] });
});
