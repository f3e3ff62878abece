import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { StateName } from "../pods/states/pod-state.ts";
import type { Termination } from "../pods/worker/pod-termination.ts";
import { type EvictablePod, EvictionManager, type EvictionManagerOptions } from "./eviction-manager.ts";
import { EvictionRecords } from "./eviction-records.ts";
import type { FileSystemLayout, Observation, Signal } from "./signals.ts";
import type { Threshold } from "./thresholds.ts";

const MI = 2 ** 20;
const GI = 2 ** 30;

class PlayedPod implements EvictablePod {
  readonly pod: Pod;
  readonly observation = { sandboxes: [], containers: [] };
  stateName: StateName = "running";
  isIdle = true;
  readonly terminations: Termination[] = [];
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;
  onTerminate: (() => void) | undefined;

  constructor(
    name: string,
    spec: Partial<Pod["spec"]> = {},
    annotations: Readonly<Record<string, string>> = {},
    status: Pod["status"] = {},
  ) {
    const metadata = { name, namespace: "default", uid: name, annotations };
    this.pod = { metadata, spec: { containers: [{ name: "c" }], ...spec }, status };
  }

  terminate(termination: Termination): void {
    this.terminations.push(termination);
    this.stateName = "terminating";
    this.onTerminate?.();
  }

  end(): void {
    this.stateName = "terminated";
    this.#ended.resolve();
  }
}

interface Played {
  readonly clock: FakeClock;
  readonly manager: EvictionManager;
  readonly records: EvictionRecords;
  readonly rootDir: string;
  /** Events, evictions and reclaims in order. */
  readonly done: string[];
  readonly annotations: (Readonly<Record<string, string>> | undefined)[];
  /** Of the events `Evicted`. */
  readonly eventNames: string[];
  readonly ages: string[];
  readonly pods: PlayedPod[];
  readonly memory: Map<string, number>;
  set(signal: Signal, available: number, capacity: number): void;
  stop(): Promise<void>;
}

const hard = (signal: Signal, value: string, more: Partial<Threshold> = {}): Threshold => {
  return { signal, value, minimumReclaim: undefined, graceMs: 0, ...more };
};

async function play(
  t: Test,
  thresholds: readonly Threshold[],
  more: Partial<EvictionManagerOptions> & { readonly layout?: FileSystemLayout; readonly rootDir?: string } = {},
): Promise<Played> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const done: string[] = [];
  const annotations: Played["annotations"] = [];
  const ages: string[] = [];
  const eventNames: string[] = [];
  const pods: PlayedPod[] = [];
  const memory = new Map<string, number>();
  const observed = new Map<Signal, Observation>();
  const rootDir = more.rootDir ?? t.testdir();
  const records = await EvictionRecords.open(rootDir, silentLogger);
  const manager = new EvictionManager({
    thresholds,
    maxPodGraceSeconds: 0,
    transitionMs: 300_000,
    kernelMemcgNotification: false,
    observer: {
      findLayout: async () => more.layout ?? { hasImageFs: false, isSplit: false },
      observe: async () => new Map([...observed].map(([signal, each]) => [signal, { ...each, at: clock.now() }])),
    },
    measurePods: async (active) =>
      new Map(
        active.map(({ pod }) => {
          const used = memory.get(pod.metadata?.uid ?? "") ?? 0;
          const size = { usedBytes: used, inodesUsed: used };
          const containers = [{ name: "c", memory: used, root: size, logs: { usedBytes: 0, inodesUsed: 0 } }];
          const volumes = { usedBytes: 0, inodesUsed: 0 };
          return [pod.metadata?.uid ?? "", { memory: used, processes: used, containers, volumes }];
        }),
      ),
    pods: () => pods,
    areSourcesReady: () => true,
    records: {
      get all() {
        return records.all;
      },
      add: (record) => countWrite(records.add(record)),
      retain: (isUnfinished) => countWrite(records.retain(isUnfinished)),
      isInterrupted: (uid) => records.isInterrupted(uid),
      takeInterrupted: (uid) => records.takeInterrupted(uid),
    },
    containers: { removeUnused: async () => done.push("remove containers") },
    images: { removeUnused: async () => done.push("remove images") },
    recordNodeEvent: (type, reason, message) => void done.push(`${type} ${reason}: ${message}`),
    events: {
      recordPodEvent(pod, type, reason, _message, { annotations: given, name } = {}) {
        done.push(`${type} ${reason} ${pod.metadata?.name}`);
        annotations.push(given);
        if (reason === "Evicted") eventNames.push(name ?? "");
      },
      recordContainerEvent: () => undefined,
    },
    onConditions: () => done.push(`conditions ${manager.conditions.join()}`),
    onEvicted: (signal) => done.push(`evicted ${signal}`),
    onStatsAge: (signal, seconds) => ages.push(`${signal} ${seconds}`),
    clock,
    log: silentLogger,
    signal: stop.signal,
    ...more,
  });
  const running = manager.run();
  const set = (signal: Signal, available: number, capacity: number): void =>
    void observed.set(signal, { available, capacity, at: 0 });
  const end = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  t.teardown(end);
  await settle(clock);
  return { clock, manager, records, rootDir, done, annotations, eventNames, ages, pods, memory, set, stop: end };
}

let pendingWrites = 0;

async function countWrite(write: Promise<void>): Promise<void> {
  pendingWrites++;
  await write.finally(() => pendingWrites--);
}

/** Lets writes of the file complete, which take real time. */
async function settle(clock: FakeClock, milliseconds = 0): Promise<void> {
  await clock.advance(milliseconds);
  for (let attempt = 0; attempt < 3 || pendingWrites > 0; attempt++) {
    await setTimeout(1);
    await clock.advance(0);
  }
}

t.test("evicts one pod at a time, and waits until it is cleaned up", async (t) => {
  const played = await play(t, [hard("memory.available", "100Mi")]);
  const { clock, done, pods, memory } = played;
  const [small, large] = [new PlayedPod("small"), new PlayedPod("large")];
  pods.push(small, large);
  memory.set("small", MI).set("large", 500 * MI);
  played.set("memory.available", 50 * MI, GI);
  await settle(clock, 1_000);
  const message =
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. " +
    "Container c was using 500Mi, request is 0, has larger consumption of memory. ";
  t.same(large.terminations, [{ graceSeconds: 1, failure: { reason: "Evicted", message }, disruption: message }]);
  t.same(done, [
    "conditions MemoryPressure",
    "Warning EvictionThresholdMet: Attempting to reclaim memory",
    "Warning Evicted large",
  ]);
  t.match(played.annotations, [
    { offending_containers: "c", offending_containers_usage: "500Mi", starved_resource: "memory" },
  ]);
  t.same(played.ages, ["memory.available 0"]);
  await settle(clock, 5_000);
  t.same(small.terminations, [], "the containers of the first pod still run");
  large.isIdle = false;
  large.end();
  await settle(clock, 20_000);
  t.same(small.terminations, [], "its volumes are not removed yet");
  played.set("memory.available", 550 * MI, GI);
  large.isIdle = true;
  await settle(clock, 10_000);
  t.same(small.terminations, []);
  t.equal(done.at(-1), "evicted memory.available");
  t.same(played.manager.conditions, ["MemoryPressure"]);
  await settle(clock, 300_000);
  t.same(played.manager.conditions, []);
});

t.test("forecasts when thresholds are met at the present rate, and the pods that go first", async (t) => {
  const played = await play(t, [hard("pid.available", "10"), hard("memory.available", "100Mi")]);
  const { clock, pods, memory, manager, set, done } = played;
  const critical = new PlayedPod("critical", { priority: 2_000_001_000 });
  pods.push(new PlayedPod("small"), new PlayedPod("large", { priority: 5 }), critical);
  memory
    .set("small", MI)
    .set("large", 500 * MI)
    .set("critical", GI);
  set("pid.available", 1000, 2000);
  for (let seconds = 0; seconds <= 60; seconds += 10) {
    set("memory.available", 700 * MI - seconds * MI, GI);
    await settle(clock, 10_000);
  }
  const [first, second] = await manager.forecast();
  t.match(first, {
    signal: "memory.available",
    condition: "MemoryPressure",
    available: 640 * MI,
    threshold: 100 * MI,
    reclaimed: [],
    pods: [
      { namespace: "default", name: "small", used: MI, requested: 0 },
      { name: "large", used: 500 * MI, priority: 5 },
    ],
  });
  t.equal(first?.pods.length, 2, "no critical pod");
  t.ok((first?.inSeconds ?? 0) > 500 && (first?.inSeconds ?? 0) < 700, `${first?.inSeconds} s`);
  t.match(second, { signal: "pid.available", ratePerSecond: 0, inSeconds: undefined });
  t.same(done, []);
  set("memory.available", 50 * MI, GI);
  t.match(await manager.forecast(), [{ signal: "memory.available", inSeconds: 0 }]);
});

t.test("evicts the next pod when the first one was not sufficient, or is not cleaned up in time", async (t) => {
  const { clock, pods, memory, set, done } = await play(t, [hard("memory.available", "100Mi")]);
  const [a, b] = [new PlayedPod("a"), new PlayedPod("b")];
  pods.push(a, b);
  memory.set("a", 2).set("b", 1);
  a.onTerminate = () => a.end();
  a.isIdle = false;
  set("memory.available", MI, GI);
  await settle(clock, 1_000);
  t.equal(a.terminations.length, 1);
  await settle(clock, 29_000);
  t.equal(b.terminations.length, 0);
  await settle(clock, 2_000);
  t.equal(b.terminations.length, 1);
  await settle(clock, 10_000);
  t.ok(done.includes("Warning ExceededGracePeriod b"), "the runtime does not stop it");
});

t.test("reclaims from the node before pods, and only what is on the file system", async (t) => {
  const table: readonly (readonly [Signal, FileSystemLayout, string])[] = [
    ["nodefs.available", { hasImageFs: false, isSplit: false }, "containers images"],
    ["imagefs.inodesFree", { hasImageFs: false, isSplit: false }, "containers images"],
    ["nodefs.available", { hasImageFs: true, isSplit: false }, ""],
    ["imagefs.available", { hasImageFs: true, isSplit: false }, "containers images"],
    ["imagefs.available", { hasImageFs: true, isSplit: true }, "images"],
    ["nodefs.inodesFree", { hasImageFs: true, isSplit: true }, "containers"],
    ["memory.available", { hasImageFs: false, isSplit: false }, ""],
    ["pid.available", { hasImageFs: false, isSplit: false }, ""],
  ];
  for (const [signal, layout, expected] of table) {
    const { clock, set, done, pods, stop } = await play(t, [hard(signal, "10%")], { layout });
    pods.push(new PlayedPod("a"));
    set(signal, 5, 100);
    await settle(clock, 10_000);
    const reclaimed = done.filter((each) => each.startsWith("remove")).map((each) => each.slice("remove ".length));
    t.equal(reclaimed.join(" "), expected, `${signal} ${JSON.stringify(layout)}`);
    t.ok(done.includes("Warning Evicted a"), "and evicts a pod all the same, for it was not sufficient");
    await stop();
  }
});

t.test("evicts no pod when reclaiming from the node is sufficient", async (t) => {
  let free = (): void => undefined;
  const images = {
    async removeUnused() {
      free();
      return 1;
    },
  };
  const containers = {
    async removeUnused(): Promise<number> {
      throw new Error("the runtime is away");
    },
  };
  const { clock, set, pods, manager } = await play(t, [hard("nodefs.available", "10%")], { images, containers });
  free = () => set("nodefs.available", 50, 100);
  const pod = new PlayedPod("a");
  pods.push(pod);
  set("nodefs.available", 5, 100);
  await settle(clock, 1_000);
  t.same(pod.terminations, []);
  t.same(manager.conditions, ["DiskPressure"]);
});

t.test("never evicts static, mirror and critical pods, or pods that have ended", async (t) => {
  const { clock, set, pods, memory, done } = await play(t, [hard("memory.available", "100Mi")]);
  const ended = new PlayedPod("ended");
  ended.end();
  const admitting = new PlayedPod("admitting");
  admitting.stateName = "admitting";
  const kept = [
    new PlayedPod("static", {}, { "kubernetes.io/config.source": "file" }),
    new PlayedPod("critical", { priority: 2_000_000_000 }),
    ended,
    admitting,
  ];
  pods.push(...kept);
  for (const { pod } of kept) memory.set(pod.metadata?.uid ?? "", GI);
  set("memory.available", MI, GI);
  await settle(clock, 60_000);
  t.same(
    kept.flatMap(({ terminations }) => terminations),
    [],
  );
  const attempts = done.filter((each) => each.includes("EvictionThresholdMet")).length;
  t.ok(attempts >= 5 && attempts <= 7, `an attempt every 10 s: ${attempts}`);
  const other = new PlayedPod("other");
  pods.push(other);
  await settle(clock, 10_000);
  t.equal(other.terminations.length, 1);
});

t.test("a soft threshold evicts after its grace period, with the pod's time limited", async (t) => {
  const soft = hard("memory.available", "1Gi", { graceMs: 90_000 });
  const table: readonly (readonly [number, number | undefined, boolean?])[] = [
    [0, 0],
    [20, 20],
    [60, 40],
    [60, 60, true],
    [-1, undefined],
  ];
  for (const [maxPodGraceSeconds, expected, overwritesPodGrace] of table) {
    const { clock, set, pods, manager, stop } = await play(t, [soft], { maxPodGraceSeconds, overwritesPodGrace });
    const pod = new PlayedPod("a", { terminationGracePeriodSeconds: 40 });
    pods.push(pod);
    set("memory.available", MI, 2 * GI);
    await settle(clock, 1_000);
    t.same(manager.conditions, ["MemoryPressure"]);
    await settle(clock, 89_000);
    t.same(pod.terminations, []);
    await settle(clock, 2_000);
    t.equal(pod.terminations.length, 1);
    t.equal(pod.terminations[0]?.graceSeconds, expected);
    await stop();
  }
});

t.test("an eviction continues after a restart, until its status is reported", async (t) => {
  const first = await play(t, [hard("memory.available", "100Mi")]);
  const pod = new PlayedPod("a");
  first.pods.push(pod);
  first.set("memory.available", MI, GI);
  await settle(first.clock, 1_000);
  t.equal(pod.terminations.length, 1);
  await first.stop();
  const again = await EvictionRecords.open(first.rootDir, silentLogger);
  t.same(again.findTermination(pod.pod), pod.terminations[0]);
  t.equal(again.findTermination({ metadata: { uid: "other" } }), undefined);
  const reported: Pod = { ...pod.pod, status: { phase: "Failed", reason: "Evicted" } };
  t.equal(again.findTermination(reported), undefined);
  const second = await play(t, [hard("memory.available", "100Mi")], { rootDir: first.rootDir });
  t.equal(second.records.all.length, 0, "no source has the pod any more");
  t.same((await EvictionRecords.open(first.rootDir, silentLogger)).all, []);
});

t.test("an eviction that was interrupted is completed before another pod is evicted, with one event", async (t) => {
  const first = await play(t, [hard("memory.available", "100Mi")]);
  const [pod, other] = [new PlayedPod("a"), new PlayedPod("b")];
  first.memory.set("a", MI);
  first.pods.push(pod, other);
  first.set("memory.available", MI, GI);
  await settle(first.clock, 1_000);
  await first.stop();
  const pods: PlayedPod[] = [];
  const again = new PlayedPod("a");
  const left = new PlayedPod("b");
  again.stateName = "terminating";
  // The sources send their pods while the agent reclaims from the node.
  const images = {
    async removeUnused() {
      if (pods.length === 0) pods.push(again, left);
      return 0;
    },
  };
  const more = { rootDir: first.rootDir, areSourcesReady: () => pods.length > 0, pods: () => pods, images };
  const second = await play(t, [hard("nodefs.available", "100Mi")], more);
  second.set("nodefs.available", MI, GI);
  await settle(second.clock, 10_000);
  t.same(left.terminations, [], "what the first pod uses is not free yet");
  t.same(second.eventNames, first.eventNames, "the event has the same name, so that it is created once");
  t.same(second.annotations, first.annotations.slice(0, 1));
  second.set("nodefs.available", GI, GI);
  again.end();
  await settle(second.clock, 1_000);
  t.same(left.terminations, []);
  t.equal(second.done.filter((each) => each.includes("Evicted")).length, 1);
});

t.test("an eviction whose status is reported is interrupted until the volumes are removed", async (t) => {
  const first = await play(t, [hard("nodefs.available", "100Mi")]);
  first.pods.push(new PlayedPod("a"));
  first.set("nodefs.available", MI, GI);
  await settle(first.clock, 1_000);
  await first.stop();
  const again = new PlayedPod("a", {}, {}, { phase: "Failed", reason: "Evicted" });
  const left = new PlayedPod("b");
  again.stateName = "terminated";
  again.isIdle = false;
  again.end();
  const pods = [again, left];
  const second = await play(t, [hard("nodefs.available", "100Mi")], { rootDir: first.rootDir, pods: () => pods });
  second.set("nodefs.available", MI, GI);
  await settle(second.clock, 10_000);
  t.same(left.terminations, []);
  t.equal(second.records.all.length, 1);
  again.isIdle = true;
  second.set("nodefs.available", GI, GI);
  await settle(second.clock, 20_000);
  t.same(left.terminations, []);
  t.equal(second.records.all.length, 0);
});

t.test("a file of evictions that is damaged is ignored", async (t) => {
  const rootDir = t.testdir();
  for (const text of ["{", "7", '[{"uid":1},null,{"uid":"a"}]']) {
    await writeFile(join(rootDir, "evictions.json"), text);
    t.same((await EvictionRecords.open(rootDir, silentLogger)).all, []);
  }
});

t.test("continues after the runtime was away", async (t) => {
  let fails = 2;
  const observer = {
    async findLayout(): Promise<FileSystemLayout> {
      if (fails-- > 0) throw new Error("no runtime");
      return { hasImageFs: false, isSplit: false };
    },
    observe: async () => new Map([["memory.available" as const, { available: MI, capacity: GI, at: 0 }]]),
  };
  const { clock, pods } = await play(t, [hard("memory.available", "100Mi")], { observer });
  const pod = new PlayedPod("a");
  pods.push(pod);
  await settle(clock, 10_000);
  t.same(pod.terminations, []);
  await settle(clock, 10_000);
  t.equal(pod.terminations.length, 1);
});
