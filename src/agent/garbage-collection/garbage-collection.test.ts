import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { FileSystem } from "../stats/file-systems.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { ContainerCollector } from "./container-collector.ts";
import { ImageCollector, type ImageCollectorOptions } from "./image-collector.ts";
import { listImagesInUse } from "./images-in-use.ts";

const MINUTE = 60_000;

function setUp(options: Partial<ImageCollectorOptions> = {}) {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  fake.present.clear();
  fake.imageDirectory = "/images";
  const disk = { capacityBytes: 10_000, availableBytes: 1_000 };
  const inUse = new Set<string>();
  const events: string[] = [];
  const collected: string[] = [];
  const collector = new ImageCollector({
    images: fake.images,
    inUse: () => inUse,
    kept: new Set(["kept:1"]),
    readFileSystem: async () => disk as FileSystem,
    recordEvent: (...event) => events.push(event.join(" ")),
    onCollected: (reason) => collected.push(reason),
    clock,
    log: silentLogger,
    highPercent: 85,
    lowPercent: 80,
    minAgeMs: 2 * MINUTE,
    maxAgeMs: 0,
    ...options,
  });
  const present = () => [...fake.present.keys()];
  return { clock, fake, disk, inUse, events, collected, collector, present };
}

t.test("ImageCollector frees bytes down to the low threshold, least recently used images first", async (t) => {
  const { clock, fake, inUse, collector, collected, present, disk } = setUp();
  for (const name of ["a:1", "b:1", "c:1", "kept:1"]) fake.addImage(name, { size: 600n });
  fake.addImage("pinned:1", { pinned: true });
  inUse.add("sha256:b:1");
  inUse.add("a:1");
  await collector.observe();
  await clock.advance(MINUTE);
  inUse.delete("a:1");
  await collector.observe();
  await collector.collect().catch(() => {});
  t.equal(present().length, 5, "images younger than the minimum age stay");
  await clock.advance(5 * MINUTE);
  await collector.collect();
  t.same(present(), ["b:1", "kept:1", "pinned:1"], "c, which was never used, and a, to free 1000 bytes");
  t.same(collected, ["space", "space"]);
  disk.availableBytes = 1600;
  inUse.clear();
  await clock.advance(MINUTE);
  await collector.collect();
  t.equal(present().length, 3, "84 % are below the high threshold");
});

t.test("ImageCollector reports that too little can be freed", async (t) => {
  const { clock, fake, collector, events } = setUp();
  fake.addImage("a:1", { size: 100n });
  await collector.observe();
  await clock.advance(5 * MINUTE);
  const message =
    "Failed to garbage collect required amount of images. Attempted to free 1000 bytes, but only found 100 bytes eligible to free.";
  await t.rejects(collector.collect(), { message });
  t.same(events, [`Warning FreeDiskSpaceFailed ${message}`]);
});

t.test("ImageCollector removes images that were not used for the maximum age", async (t) => {
  const { clock, fake, collector, collected, inUse, present, disk } = setUp({ maxAgeMs: 60 * MINUTE });
  disk.availableBytes = 9_000;
  fake.addImage("used:1");
  fake.addImage("unused:1");
  inUse.add("used:1");
  for (let i = 0; i < 12; i++) {
    await collector.collect();
    t.equal(present().length, 2);
    await clock.advance(5 * MINUTE);
  }
  await clock.advance(MINUTE);
  await collector.collect();
  t.same(present(), ["used:1"]);
  t.same(collected, ["age"]);
});

t.test("ImageCollector.removeUnused() removes all that is old enough", async (t) => {
  const { clock, fake, collector, present } = setUp();
  for (const name of ["a:1", "b:1"]) fake.addImage(name, { size: 7n });
  await collector.observe();
  await clock.advance(3 * MINUTE);
  fake.addImage("new:1");
  t.equal(await collector.removeUnused(), 14);
  t.same(present(), ["new:1"]);
});

t.test("An image that cannot be removed keeps no other, and the collection fails with all errors", async (t) => {
  const start = async (maxAgeMs: number) => {
    const parts = setUp({ maxAgeMs });
    for (const name of ["a:1", "b:1", "c:1"]) parts.fake.addImage(name, { size: 700n });
    await parts.collector.observe();
    await parts.clock.advance(65 * MINUTE);
    parts.fake.fail("removeImage", new Error("busy"));
    return parts;
  };
  const space = await start(0);
  const failed = "bytes space with errors in image deletion: busy";
  await t.rejects(space.collector.collect(), { message: `wanted to free 1000 bytes, but freed 1400 ${failed}` });
  t.same(space.present(), ["a:1"]);
  const all = await start(0);
  all.fake.fail("removeImage", new Error("in use"));
  await t.rejects(all.collector.removeUnused(), {
    message: /^wanted to free 9223372036854775807 bytes, but freed 700 bytes space with .*: \[busy, in use\]$/,
  });
  t.same(all.present(), ["a:1", "b:1"]);
  const old = await start(60 * MINUTE);
  await t.rejects(old.collector.collect(), {
    message: "wanted to free images older than 1h0m0s, encountered errors in image deletion: busy",
  });
  t.same(old.present(), ["a:1"]);
});

t.test("ImageCollector.forecast() has what the next collection removes, in order", async (t) => {
  const { clock, fake, collector, disk, inUse, present } = setUp({ maxAgeMs: 60 * MINUTE });
  for (const name of ["a:1", "b:1", "c:1", "kept:1"]) fake.addImage(name, { size: 300n });
  inUse.add("a:1");
  await collector.observe();
  await clock.advance(MINUTE);
  inUse.clear();
  disk.availableBytes = 4_000;
  const forecast = await collector.forecast();
  t.match(forecast, { usedPercent: 60, bytesLeft: 2_400, highPercent: 85, lowPercent: 80 });
  t.same(forecast.next, [
    { id: "sha256:b:1", names: ["b:1"], sizeBytes: 300, inSeconds: 60 },
    { id: "sha256:c:1", names: ["c:1"], sizeBytes: 300, inSeconds: 60 },
  ]);
  t.same(
    forecast.aged.map(({ id, inSeconds }) => `${id} ${inSeconds}`),
    ["sha256:b:1 3540", "sha256:c:1 3540", "sha256:a:1 3540"],
  );
  disk.availableBytes = 1_500;
  t.equal((await collector.forecast()).bytesLeft, 0);
  await clock.advance(2 * MINUTE);
  await collector.collect();
  t.same(present(), ["a:1", "kept:1"], "as forecast");
  const off = setUp({ highPercent: 100 });
  t.match(await off.collector.forecast(), { bytesLeft: undefined, next: [], aged: [] });
});

t.test("ContainerCollector.forecast() has the containers that the next collection removes", async (t) => {
  const runs = { p: ["a running", "a", "a", "a"], q: ["b", "b"] };
  const names = (collector: ContainerCollector) => collector.forecast().next.map(({ id }) => id);
  const { collector, removed } = containers(t, 2, runs);
  t.match(collector.forecast(), { limit: 2, count: 4, inSeconds: 0 });
  const next = names(collector);
  await collector.collect();
  t.same([...removed].sort(), [...next].sort(), "as forecast");
  t.match(containers(t, -1, runs).collector.forecast(), { limit: -1, count: 4, inSeconds: undefined, next: [] });
  const below = containers(t, 9, runs).collector;
  t.match(below.forecast(), { count: 4, inSeconds: undefined });
  t.same(names(below), ["a2", "a3", "b5"]);
});

t.test("ImageCollector reports the images that are present after each collection that succeeds", async (t) => {
  const ended: (readonly [string[], number])[] = [];
  const onEnded = async (present: ReadonlySet<string>, startedAt: number) =>
    void ended.push([[...present], startedAt] as const);
  const { clock, fake, collector, disk } = setUp({ onEnded });
  for (const name of ["a:1", "b:1"]) fake.addImage(name, { size: 100n });
  await collector.observe();
  await clock.advance(5 * MINUTE);
  await t.rejects(collector.collect());
  t.same(ended, []);
  fake.addImage("c:1");
  disk.availableBytes = 9_000;
  await collector.collect();
  await clock.advance(5 * MINUTE);
  await collector.removeUnused();
  t.same(ended, [
    [["sha256:c:1"], clock.now() - 5 * MINUTE],
    [[], clock.now()],
  ]);
});

t.test("ImageCollector rejects when the file system of images is unknown", async (t) => {
  const { fake, collector, disk, events } = setUp();
  disk.capacityBytes = 0;
  await t.rejects(collector.collect(), /invalid capacity 0 on image filesystem/);
  t.same(events, ["Warning InvalidDiskCapacity invalid capacity 0 on image filesystem"]);
  fake.imageDirectory = undefined;
  await t.rejects(collector.collect(), /cannot be read/);
});

t.test("listImagesInUse() has the names of specs as runtimes list them", async (t) => {
  const container = (image: string) => ({ name: "c", image });
  const pod = { metadata: { name: "p" }, spec: { containers: [container("busybox"), container("r.io:5000/a/b:1")] } };
  const observation = { sandboxes: [], containers: [{ image: "x:1", imageId: "sha256:1" } as ObservedContainer] };
  const names = listImagesInUse([{ pod, observation: observation as unknown as Observation }], []);
  for (const name of ["docker.io/library/busybox:latest", "r.io:5000/a/b:1", "x:1", "sha256:1"]) t.ok(names.has(name));
});

t.test("listImagesInUse() has the images of all containers, before an agent that starts has any pod", async (t) => {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const { podSandboxId } = await fake.runtime.runPodSandbox({ config: { metadata: { name: "p", uid: "p" } } });
  const config = { metadata: { name: "c" }, image: { image: "busybox:1" } };
  await fake.runtime.createContainer({ podSandboxId, config, sandboxConfig: {} });
  const { containers: listed = [] } = await fake.runtime.listContainers({});
  t.same([...listImagesInUse([], listed)], ["busybox:1"]);
  const names = listImagesInUse([], [{ image: { image: "a" }, imageRef: "sha256:b", imageId: "sha256:c" }]);
  t.same([...names], ["a", "sha256:b", "sha256:c"]);
});

function containers(t: Test, deadMax: number, runs: Readonly<Record<string, readonly string[]>>, minAgeMs = 0) {
  const clock = new FakeClock();
  const removed: string[] = [];
  let age = 0;
  const pods = Object.values(runs).map((states) => ({
    observation: {
      sandboxes: [],
      containers: states.map((state) => {
        const [name = "", run = "exited"] = state.split(" ");
        return { id: `${name}${age}`, name, state: run, createdAt: clock.now() - MINUTE * age++, logPath: "" };
      }),
    } as unknown as Observation,
  }));
  const runtime = {
    removeContainer: async ({ containerId = "" }) => {
      removed.push(containerId);
      return {};
    },
  };
  t.teardown(() => clock.pending);
  return {
    removed,
    collector: new ContainerCollector({ runtime, pods: () => pods, deadMax, minAgeMs, clock, log: silentLogger }),
  };
}

t.test("ContainerCollector keeps the newest run of each container, and at most the limit of others", async (t) => {
  const cases: readonly (readonly [number, Record<string, string[]>, readonly string[], number?])[] = [
    [-1, { p: ["a", "a", "a"] }, []],
    [0, { p: ["a", "a", "a"] }, ["a1", "a2"]],
    [0, { p: ["a running", "a", "a"] }, ["a1", "a2"]],
    [1, { p: ["a running", "a", "a"] }, ["a2"]],
    [2, { p: ["a running", "a", "a", "a"], q: ["b", "b"] }, ["a2", "a3"]],
    [1, { p: ["a", "a"], q: ["b", "b"] }, ["b3"]],
    [0, { p: ["a", "a", "a"] }, ["a2"], MINUTE],
    [0, { p: ["a", "b"] }, []],
  ];
  for (const [max, runs, expected, minAgeMs] of cases) {
    const { collector, removed } = containers(t, max, runs, minAgeMs);
    await collector.collect();
    t.same(removed.sort(), expected, `${max} of ${JSON.stringify(runs)}`);
  }
  const { collector, removed } = containers(t, -1, { p: ["a", "a"] }, MINUTE * 10);
  t.equal(await collector.removeUnused(), 1, "without limit and age");
  t.same(removed, ["a1"]);
});

t.test("ContainerCollector.removeUnused() removes the newest runs of pods that have ended", async (t) => {
  const removed: string[] = [];
  const run = (id: string, state: string) => ({ id, name: "c", state, createdAt: 1, logPath: "" });
  const pod = (uid: string, stateName: "running" | "terminated", ...states: readonly string[]) => ({
    pod: { metadata: { name: uid, uid } },
    stateName,
    observation: {
      sandboxes: [],
      containers: states.map((state, index) => run(`${uid}${index}`, state)),
    } as unknown as Observation,
  });
  const pods = [pod("ended", "terminated", "exited", "exited"), pod("waiting", "running", "exited", "exited")];
  const runtime = {
    removeContainer: async ({ containerId = "" }) => {
      removed.push(containerId);
      return {};
    },
  };
  const common = { clock: new FakeClock(), log: silentLogger };
  const collector = new ContainerCollector({ runtime, pods: () => pods, deadMax: 0, minAgeMs: 0, ...common });
  await collector.collect();
  t.same(removed.splice(0), ["ended1", "waiting1"], "not without need");
  t.equal(await collector.removeUnused(), 3);
  t.same(removed, ["ended0", "ended1", "waiting1"]);
});

t.test("A container that cannot be removed keeps no other", async (t) => {
  const clock = new FakeClock();
  const removed: string[] = [];
  let stuck = ["c2"];
  const runtime = {
    removeContainer: async ({ containerId = "" }) => {
      if (stuck.includes(containerId)) throw new Error(`cannot remove ${containerId}`);
      removed.push(containerId);
      return {};
    },
  };
  const run = (index: number) => ({ id: `c${index}`, name: "c", state: "exited", createdAt: -index, logPath: "" });
  const observation = { sandboxes: [], containers: [0, 1, 2, 3].map(run) } as unknown as Observation;
  const pods = () => [{ observation }];
  const common = { runtime, pods, deadMax: 0, minAgeMs: 0, clock, log: silentLogger };
  const collector = new ContainerCollector(common);
  await collector.collect();
  t.same(removed.sort(), ["c1", "c3"]);
  stuck = ["c1", "c2", "c3"];
  await t.rejects(collector.collect(), { message: /^cannot remove c/ }, "the runtime removes nothing");
});

t.test("collectGarbage() runs at its intervals and reports repeated failures", async (t) => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const start = clock.now();
  const counts = { images: 0, containers: 0 };
  const events: string[] = [];
  const running = collectGarbage({
    images: {
      isEnabled: true,
      async collect() {
        if (++counts.images < 3) throw new Error("no images");
      },
    },
    containers: {
      isEnabled: true,
      async collect() {
        if (++counts.containers === 2) throw new Error("no containers");
      },
    },
    isReady: () => clock.now() > start,
    recordEvent: (_, reason, message) => events.push(`${reason} ${message}`),
    clock,
    log: silentLogger,
    signal: stop.signal,
  });
  for (let i = 0; i < 11; i++) await clock.advance(MINUTE);
  t.same(counts, { images: 3, containers: 11 });
  t.same(events, ["ContainerGCFailed no containers", "ImageGCFailed no images"]);
  stop.abort();
  await running;
  t.equal(clock.pending, 0);
});
