import t from "tap";
import type { EvictionConfig } from "../agent-config.ts";
import { NodePressure } from "./node-pressure.ts";
import { formatAmount, type Observations, type Signal } from "./signals.ts";
import {
  addContainerThresholds,
  computeIntervalMs,
  findMetThresholds,
  makeThresholds,
  sortByUrgency,
} from "./thresholds.ts";

const MI = 2 ** 20;

const config: EvictionConfig = {
  hard: {},
  soft: {},
  softGraceMs: {},
  minimumReclaim: {},
  maxPodGraceSeconds: 0,
  overwritesPodGrace: false,
  splitDisks: true,
  transitionMs: 300_000,
  kernelMemcgNotification: false,
  enforcesPods: false,
};

function observe(figures: Partial<Record<Signal, readonly [available: number, capacity: number]>>): Observations {
  const entries = Object.entries(figures).map(([signal, [available, capacity]]) => {
    return [signal as Signal, { available, capacity, at: 0 }] as const;
  });
  return new Map(entries);
}

t.test("makeThresholds() reads quantities, shares, grace periods and minimum reclaims", async (t) => {
  const made = makeThresholds({
    ...config,
    hard: { "memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "100%", "pid.available": "5%" },
    soft: { "memory.available": "1Gi" },
    softGraceMs: { "memory.available": 90_000 },
    minimumReclaim: { "memory.available": "50Mi" },
    enforcesPods: true,
  });
  t.same(made, [
    { signal: "memory.available", value: "100Mi", minimumReclaim: "50Mi", graceMs: 0 },
    { signal: "pid.available", value: "5%", minimumReclaim: undefined, graceMs: 0 },
    { signal: "memory.available", value: "1Gi", minimumReclaim: "50Mi", graceMs: 90_000 },
    { signal: "allocatableMemory.available", value: "100Mi", minimumReclaim: "50Mi", graceMs: 0 },
  ]);
});

t.test("addContainerThresholds() copies those of the file system that containers share", async (t) => {
  const hard = {
    "nodefs.available": "10%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
    "containerfs.available": "1Gi",
  };
  const thresholds = makeThresholds({ ...config, hard });
  const ofContainers = (hasImageFs: boolean, isSplit: boolean) =>
    addContainerThresholds(thresholds, { hasImageFs, isSplit })
      .filter(({ signal }) => signal.startsWith("containerfs"))
      .map(({ signal, value }) => `${signal}<${value}`);
  t.same(ofContainers(false, false), ["containerfs.available<10%"]);
  t.same(ofContainers(true, true), ["containerfs.available<10%"]);
  t.same(ofContainers(true, false), ["containerfs.available<15%", "containerfs.inodesFree<5%"]);
  t.same(ofContainers(false, true), ["containerfs.available<1Gi"], "as configured");
});

t.test("findMet() compares with the threshold, and with the minimum reclaim as well", async (t) => {
  const hard = { "memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%" };
  const minimumReclaim = { "memory.available": "50Mi", "nodefs.available": "10%" };
  const thresholds = makeThresholds({ ...config, hard, minimumReclaim });
  const met = (observations: Observations, enforceReclaim = false) =>
    findMetThresholds(thresholds, observations, enforceReclaim).map(({ signal }) => signal);
  t.same(met(observe({ "memory.available": [100 * MI, 1000 * MI] })), [], "equal is not met");
  t.same(met(observe({ "memory.available": [100 * MI - 1, 1000 * MI] })), ["memory.available"]);
  t.same(met(observe({ "memory.available": [149 * MI, 1000 * MI] }), true), ["memory.available"]);
  t.same(met(observe({ "memory.available": [150 * MI, 1000 * MI] }), true), []);
  t.same(met(observe({ "nodefs.available": [19, 100] }), true), ["nodefs.available"]);
  t.same(met(observe({ "nodefs.inodesFree": [4, 100] })), ["nodefs.inodesFree"]);
  t.same(met(new Map()), [], "a signal without figures is not met");
});

t.test("sortByUrgency() has memory first", async (t) => {
  const hard = { "nodefs.available": "10%", "allocatableMemory.available": "1Mi", "memory.available": "1Mi" };
  const sorted = sortByUrgency(makeThresholds({ ...config, hard })).map(({ signal }) => signal);
  t.same(sorted, ["allocatableMemory.available", "memory.available", "nodefs.available"]);
});

t.test("NodePressure waits for grace periods, and keeps conditions for the transition period", async (t) => {
  const soft = { "memory.available": "200Mi" };
  const hard = { "memory.available": "100Mi", "nodefs.available": "10%" };
  const thresholds = makeThresholds({ ...config, hard, soft, softGraceMs: { "memory.available": 60_000 } });
  const pressure = new NodePressure(300_000);
  const update = (seconds: number, mebibytes: number, disk = 50) => {
    const figures = observe({ "memory.available": [mebibytes * MI, 1000 * MI], "nodefs.available": [disk, 100] });
    const due = pressure.update(thresholds, figures, seconds * 1000);
    return [due.map(({ value }) => value).join(), pressure.conditions.join()];
  };
  t.same(update(0, 500), ["", ""]);
  t.same(update(10, 150), ["", "MemoryPressure"], "a soft threshold sets the condition at once");
  t.equal(pressure.graceLeftMs(10_000), 60_000);
  t.same(update(40, 300), ["", "MemoryPressure"]);
  t.equal(pressure.graceLeftMs(40_000), undefined);
  t.same(update(50, 150), ["", "MemoryPressure"], "the grace period begins again");
  t.same(update(109, 150), ["", "MemoryPressure"]);
  t.same(update(110, 150), ["200Mi", "MemoryPressure"]);
  t.same(update(120, 90, 5), ["100Mi,10%,200Mi", "MemoryPressure,DiskPressure"]);
  t.same(update(130, 500), ["", "MemoryPressure,DiskPressure"]);
  t.same(update(419, 500), ["", "MemoryPressure,DiskPressure"]);
  t.same(update(420, 500), ["", ""]);
});

t.test("NodePressure keeps a threshold due until its minimum reclaim is available", async (t) => {
  const minimumReclaim = { "memory.available": "100Mi" };
  const thresholds = makeThresholds({ ...config, hard: { "memory.available": "100Mi" }, minimumReclaim });
  const pressure = new NodePressure(0);
  const isDue = (mebibytes: number) =>
    pressure.update(thresholds, observe({ "memory.available": [mebibytes * MI, 1000 * MI] }), 0).length > 0;
  t.same([150, 90, 150, 199, 200, 150].map(isDue), [false, true, true, true, false, false]);
  t.same(pressure.conditions, [], "without a transition period only what is observed counts");
});

t.test("computeIntervalMs() depends on how soon a threshold can be met", async (t) => {
  const thresholds = makeThresholds({ ...config, hard: { "memory.available": "100Mi", "nodefs.available": "10%" } });
  const interval = (memory: number, disk: number, kernelMemcgNotification = false) => {
    const figures = observe({ "memory.available": [memory, 2 ** 40], "nodefs.available": [disk, 1e12] });
    return Math.round(computeIntervalMs(thresholds, figures, kernelMemcgNotification));
  };
  const limit = 100 * MI;
  t.equal(interval(limit + 4e11, 9e11), 10_000, "at most, with much of both");
  t.equal(interval(limit + 4e9, 9e11), 1000);
  t.equal(interval(limit + 4e6, 9e11), 100, "at least");
  t.equal(interval(limit + 4e9, 9e11, true), 250);
  t.equal(interval(limit + 4e11, 1.0001e11), 1000, "disks fill slower");
  t.equal(interval(limit - 1, 9e11), 10_000, "a threshold that is met is handled otherwise");
});

t.test("a process that allocates 1 GB/s is observed within 100 ms of the threshold", async (t) => {
  const thresholds = makeThresholds({ ...config, hard: { "memory.available": "100Mi" } });
  let ms = 0;
  let checks = 0;
  const available = () => 32e9 - ms * 1e6;
  while (available() >= 100 * MI) {
    ms += computeIntervalMs(thresholds, observe({ "memory.available": [available(), 32e9] }), false);
    checks++;
  }
  t.ok(100 * MI - available() <= 1e8, `${100 * MI - available()} bytes below the threshold`);
  t.ok(checks < 25, `${checks} checks in ${ms} ms`);
});

t.test("a minimum reclaim of 100% is the whole capacity, although such a threshold is ignored", async (t) => {
  const thresholds = makeThresholds({
    ...config,
    hard: { "nodefs.available": "10%", "imagefs.available": "100%" },
    minimumReclaim: { "nodefs.available": "100%" },
  });
  const observed = (available: number): Observations =>
    new Map([["nodefs.available", { available, capacity: 1000, at: 0 }]]);
  t.equal(thresholds.length, 1);
  t.equal(findMetThresholds(thresholds, observed(999), false).length, 0);
  t.equal(findMetThresholds(thresholds, observed(999), true).length, 1);
});

t.test("formatAmount() prints as Kubernetes", async (t) => {
  t.equal(formatAmount(512 * MI, "memory"), "512Mi");
  t.equal(formatAmount(1536, "ephemeral-storage"), "1536");
  t.equal(formatAmount(3 * 1024, "memory"), "3Ki");
  t.equal(formatAmount(1000, "memory"), "1k", "less than a KiB in decimal units");
  t.equal(formatAmount(1023, "memory"), "1023");
  t.equal(formatAmount(2 ** 60, "memory"), "1Ei");
  t.equal(formatAmount(0, "memory"), "0");
  t.equal(formatAmount(2000, "inodes"), "2k");
  t.equal(formatAmount(2048, "pids"), "2048");
});
