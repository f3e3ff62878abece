/**
 * Benchmarks the store and the watch cache. Prints one JSON object; `µs` are CPU microseconds of all threads of the
 * process.
 *
 *     node src/storage/storage.bench.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "../std/log/logger.ts";
import { systemClock } from "../std/time/clock.ts";
import { makeWidget, type Widget, widgetKind } from "../testing/storage/widget.ts";
import { openLevelStore } from "./level/level.ts";
import { createMemoryStore } from "./memory.ts";
import { ObjectStore } from "./object-store.ts";
import { prefixRange, type Store } from "./store.ts";
import { WatchCache } from "./watch/cache.ts";
import { StoreFeed } from "./watch/feed.ts";

interface Figure {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

async function measure(count: number, run: () => Promise<void>): Promise<Figure> {
  const cpu = process.cpuUsage();
  const start = systemClock.monotonic();
  await run();
  const seconds = (systemClock.monotonic() - start) / 1000;
  const used = process.cpuUsage(cpu);
  return { perSecond: Math.round(count / seconds), cpuMicros: round((used.user + used.system) / count) };
}

const round = (number: number): number => Math.round(number * 10) / 10;

const WRITES = 16_000;
const value = Buffer.alloc(1500, "abcdefghij");

async function inParallel(workers: number, count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}

async function benchLevel(store: Store): Promise<Record<string, Figure>> {
  const key = (index: number): string => `/registry/widgets/default/widget-${index}`;
  const create = (workers: number, count: number, prefix = `/many/${workers}/`): Promise<Figure> =>
    measure(count, () =>
      inParallel(workers, count, async (index) => void (await store.create(`${prefix}${index}`, value))),
    );
  await create(64, 2000, "/warm/");
  const create64 = await create(64, WRITES, key(0).slice(0, -1));
  const create16 = await create(16, WRITES / 2);
  const create1 = await create(1, 1000);
  const update64 = await measure(WRITES, () =>
    inParallel(64, WRITES, async (index) => {
      const item = await store.get(key(index));
      await store.update(key(index), value, item!.modified);
    }),
  );
  const get = await measure(WRITES, async () => {
    for (let index = 0; index < WRITES; index++) await store.get(key(index));
  });
  const list = await measure(WRITES, async () => void (await store.list(prefixRange("/registry/widgets/"))));
  return { create1, create16, create64, getUpdate64: update64, get, listPerItem: list };
}

/** A pod-sized object. */
function widget(name: string, size: number): Widget {
  const annotations = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`example.com/key-${i}`, "x".repeat(60)]),
  );
  return { ...makeWidget(name, { color: "red", size }), metadata: { name, namespace: "default", annotations } };
}

interface Setting extends AsyncDisposable {
  readonly objects: ObjectStore<Widget>;
  readonly cache: WatchCache<Widget>;
}

async function setUp(store: Store): Promise<Setting> {
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  const common = { clock: systemClock, log: silentLogger };
  const feed = new StoreFeed({ store, range: prefixRange("/registry/"), ...common });
  const cache = new WatchCache({ feed, objects, ...common });
  await cache.ready();
  return {
    objects,
    cache,
    async [Symbol.asyncDispose]() {
      await cache[Symbol.asyncDispose]();
      await feed[Symbol.asyncDispose]();
    },
  };
}

/** Deliveries per second, and the mean delay in milliseconds from the start of a write to its delivery. */
async function benchFanOut(watchers: number, changes: number): Promise<Figure & { readonly delayMs: number }> {
  await using setting = await setUp(createMemoryStore({ clock: systemClock }));
  const { objects, cache } = setting;
  const controller = new AbortController();
  const started: number[] = [];
  let bytes = 0;
  let delays = 0;
  const readers = Array.from({ length: watchers }, async () => {
    let seen = 0;
    for await (const event of cache.watch({ prefix: objects.prefix(), signal: controller.signal })) {
      if (event.type !== "BOOKMARK") bytes += event.item.bytes.length;
      delays += systemClock.monotonic() - started[seen]!;
      if (++seen === changes) return;
    }
  });
  const figure = await measure(watchers * changes, async () => {
    const key = objects.key("default", "a");
    started.push(systemClock.monotonic());
    await objects.create(key, widget("a", 0));
    for (let size = 1; size < changes; size++) {
      started.push(systemClock.monotonic());
      await objects.guaranteedUpdate(key, (current) => ({ ...current, size }));
    }
    await Promise.all(readers);
  });
  controller.abort();
  if (bytes === 0) throw new Error("Nothing was delivered");
  return { ...figure, delayMs: Math.round((delays / watchers / changes) * 1000) / 1000 };
}

/** Lists `count` objects from the cache: the first list encodes them. */
async function benchList(count: number): Promise<Record<string, number>> {
  const store = createMemoryStore({ clock: systemClock });
  const writing = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  for (let i = 0; i < count; i++) await writing.create(writing.key("default", `w-${i}`), widget(`w-${i}`, i));
  const start = systemClock.monotonic();
  await using setting = await setUp(store);
  const { objects, cache } = setting;
  const cacheReadyMs = round(systemClock.monotonic() - start);
  const millis = (): number => {
    const begun = systemClock.monotonic();
    let bytes = 0;
    for (const item of cache.list(objects.prefix()).items) bytes += item.bytes.length;
    return bytes === 0 ? 0 : round(systemClock.monotonic() - begun);
  };
  return { objects: count, cacheReadyMs, firstMs: millis(), againMs: millis() };
}

const directory = mkdtempSync(join(tmpdir(), "svc-bench-"));
try {
  const options = { path: join(directory, "store"), clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
  const store = await openLevelStore(options);
  const level = await benchLevel(store);
  const compact = await measure(store.current(), () => store.compact(store.current()));
  await store[Symbol.asyncDispose]();
  const start = systemClock.monotonic();
  await (await openLevelStore(options))[Symbol.asyncDispose]();
  const reopenMs = round(systemClock.monotonic() - start);
  const fanOut = {
    watchers1: await benchFanOut(1, 5000),
    watchers100: await benchFanOut(100, 2000),
    watchers1000: await benchFanOut(1000, 500),
  };
  const list = await benchList(10_000);
  const figures = { level: { ...level, compactPerRevision: compact, reopenMs }, fanOut, list };
  console.log(JSON.stringify(figures, undefined, 2));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
