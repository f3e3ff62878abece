/** What eviction and garbage collection cost a node with 110 pods, and the time from a threshold to an eviction. */

import { CgroupTree } from "../agent/cgroups/cgroup-tree.ts";
import { type EvictablePod, EvictionManager } from "../agent/eviction/eviction-manager.ts";
import { NodeObserver } from "../agent/eviction/node-observer.ts";
import type { Threshold } from "../agent/eviction/thresholds.ts";
import { ContainerCollector } from "../agent/garbage-collection/container-collector.ts";
import { ImageCollector } from "../agent/garbage-collection/image-collector.ts";
import { listImagesInUse } from "../agent/garbage-collection/images-in-use.ts";
import { readMachine } from "../agent/node/machine/machine.ts";
import type { ObservedContainer } from "../agent/runtime/observation.ts";
import { createCgroupReader } from "../agent/stats/cgroup-reader.ts";
import type { FileSystem } from "../agent/stats/file-systems.ts";
import { silentLogger } from "../std/log/logger.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeRuntime } from "../testing/agent/fake-runtime.ts";
import { evictGreedyPod } from "../testing/agent/memory-eviction.ts";
import { findMissing } from "../testing/agent/private-containerd.ts";
import type { Figures } from "./figures.ts";

const PODS = 110;
const IMAGES = 200;
const RUNS = 3;
const ROUNDS = 200;
/** The intervals of the loops on an idle node. */
const SECONDS = { check: 10, containers: 60, images: 300 };
/** Between two checks with 1 GiB of memory above the threshold: see `computeIntervalMs`. */
const HEADROOM_SECONDS = 2 ** 30 / 4e9;
const hierarchy = "/sys/fs/cgroup";

export async function measureEviction(figures: Figures): Promise<void> {
  const pods = Array.from({ length: PODS }, (_, index) => makePod(index));
  const check = await measureCpu(await createCheck(pods));
  const containers = await measureCpu(createContainerCollection(pods));
  const images = await measureCpu(createImageCollection(pods));
  const perSecond = check / SECONDS.check + containers / SECONDS.containers + images / SECONDS.images;
  figures.addAll(`eviction and garbage collection with ${PODS} pods`, {
    "µs of CPU a check of the signals": check,
    "µs of CPU a collection of containers": containers,
    [`µs of CPU a collection of ${IMAGES} images`]: images,
    "% of a core at rest": (perSecond / 1e6) * 100,
    "% of a core with 1 GiB of memory left": (check / HEADROOM_SECONDS / 1e6) * 100,
  });
  const missing = await findMissing();
  if (missing.length > 0) return console.error(`Skipping evictions: ${missing.join(", ")} missing.`);
  const { tookMs } = await evictGreedyPod();
  if (tookMs !== undefined) figures.add("from the threshold of memory to the eviction", tookMs, "ms");
}

/** Microseconds of CPU of one call. */
async function measureCpu(work: () => Promise<unknown>): Promise<number> {
  for (let round = 0; round < ROUNDS; round++) await work();
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / ROUNDS;
}

/** The loop of the manager, whose sleeps end at once. */
async function createCheck(pods: readonly EvictablePod[]): Promise<() => Promise<void>> {
  const { memoryBytes } = await readMachine();
  const { images } = new FakeRuntime(systemClock);
  const cgroups = createCgroupReader(hierarchy, await new CgroupTree(hierarchy).isUnified(), systemClock);
  const observer = new NodeObserver({
    cgroups,
    podsCgroup: "/",
    memoryBytes,
    rootDir: "/",
    images,
    clock: systemClock,
  });
  const signals = ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "pid.available"];
  const thresholds = signals.map((signal) => ({ signal, value: "1", minimumReclaim: undefined, graceMs: 0 }));
  return async () => {
    const stop = new AbortController();
    const clock = {
      ...systemClock,
      sleep: async () => stop.abort(),
    };
    const manager = new EvictionManager({
      thresholds: thresholds as readonly Threshold[],
      maxPodGraceSeconds: 0,
      transitionMs: 0,
      kernelMemcgNotification: false,
      observer,
      measurePods: async () => new Map(),
      pods: () => pods,
      areSourcesReady: () => true,
      records: {
        all: [],
        add: async () => {},
        retain: async () => {},
        isInterrupted: () => false,
        takeInterrupted: () => undefined,
      },
      containers: { removeUnused: async () => 0 },
      images: { removeUnused: async () => 0 },
      recordNodeEvent: () => {},
      events: { recordPodEvent: () => {}, recordContainerEvent: () => {} },
      onConditions: () => {},
      onEvicted: () => {},
      onStatsAge: () => {},
      clock,
      log: silentLogger,
      signal: stop.signal,
    });
    await manager.run();
  };
}

function createContainerCollection(pods: readonly EvictablePod[]): () => Promise<void> {
  const runtime = { removeContainer: async () => ({}) };
  const common = { clock: systemClock, log: silentLogger };
  const collector = new ContainerCollector({ runtime, pods: () => pods, deadMax: PODS * RUNS, minAgeMs: 0, ...common });
  return () => collector.collect();
}

function createImageCollection(pods: readonly EvictablePod[]): () => Promise<void> {
  const fake = new FakeRuntime(systemClock);
  fake.imageDirectory = "/images";
  for (let index = 0; index < IMAGES; index++) fake.addImage(`registry.test/team/app-${index}:1`);
  const collector = new ImageCollector({
    images: fake.images,
    inUse: () => listImagesInUse(pods, []),
    kept: new Set(),
    readFileSystem: async () => ({ capacityBytes: 1e9, availableBytes: 5e8 }) as FileSystem,
    recordEvent: () => {},
    onCollected: () => {},
    clock: systemClock,
    log: silentLogger,
    highPercent: 85,
    lowPercent: 80,
    minAgeMs: 0,
    maxAgeMs: 1e9,
  });
  return async () => {
    await collector.collect();
    fake.calls.length = 0;
  };
}

function makePod(index: number): EvictablePod {
  const image = `registry.test/team/app-${index}:1`;
  const run = (attempt: number) =>
    ({
      id: `${index}-${attempt}`,
      name: "c",
      image,
      imageId: `sha256:${image}`,
      state: attempt === RUNS ? "running" : "exited",
      createdAt: attempt,
      logPath: "",
    }) as ObservedContainer;
  const containers = Array.from({ length: RUNS + 1 }, (_, attempt) => run(attempt));
  return {
    pod: { metadata: { name: `p${index}`, uid: `${index}` }, spec: { containers: [{ name: "c", image }] } },
    observation: { sandboxes: [], containers },
    stateName: "running",
    isIdle: true,
    ended: new Promise(() => {}),
    terminate: () => {},
  };
}
