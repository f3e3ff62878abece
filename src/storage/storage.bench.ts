/**
 * What the store and the watch cache cost on this machine. Prints one JSON object; `µs` are CPU microseconds of the
 * whole process, all threads.
 *
 *     node src/storage/storage.bench.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../std/clock.ts";
import { silentLogger } from "../std/log.ts";
import { openLevelStore } from "./level/level.ts";
import { createMemoryStore } from "./memory.ts";
import { ObjectStore } from "./object-store.ts";
import { prefixRange, type Store } from "./store.ts";
import { WatchCache } from "./watch/cache.ts";
import { StoreFeed } from "./watch/feed.ts";
import { makeWidget, type Widget, widgetKind } from "./widget.ts";

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

const WRITERS = 64;
const WRITES = 32_000;
const value = Buffer.alloc(1500, "abcdefghij");

async function inParallel(count: number, run: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: WRITERS }, worker));
}

async function benchLevel(store: Store): Promise<Record<string, Figure>> {
  const key = (index: number): string => `/registry/widgets/default/widget-${index}`;
  await inParallel(2000, async (index) => void (await store.create(`/warm/${index}`, value)));
  const create = await measure(WRITES, () =>
    inParallel(WRITES, async (index) => void (await store.create(key(index), value))),
  );
  const update = await measure(WRITES, () =>
    inParallel(WRITES, async (index) => {
      const item = await store.get(key(index));
      await store.update(key(index), value, item!.modified);
    }),
  );
  const one = await measure(1000, async () => {
    for (let index = 0; index < 1000; index++) await store.create(`/one/${index}`, value);
  });
  const get = await measure(WRITES, async () => {
    for (let index = 0; index < WRITES; index++) await store.get(key(index));
  });
  const list = await measure(WRITES, async () => void (await store.list(prefixRange("/registry/widgets/"))));
  return { create64: create, getUpdate64: update, createOneWriter: one, get, listPerItem: list };
}

/** A pod-sized object. */
function widget(name: string, size: number): Widget {
  const annotations = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`example.com/key-${i}`, "x".repeat(60)]),
  );
  return { ...makeWidget(name, { color: "red", size }), metadata: { name, namespace: "default", annotations } };
}

async function benchFanOut(watchers: number, changes: number): Promise<Figure> {
  const store = createMemoryStore({ clock: systemClock });
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  await using feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock: systemClock, log: silentLogger });
  await using cache = new WatchCache({ feed, objects, clock: systemClock, log: silentLogger });
  await cache.ready();
  const controller = new AbortController();
  let bytes = 0;
  const readers = Array.from({ length: watchers }, async () => {
    let seen = 0;
    for await (const event of cache.watch({ prefix: objects.prefix(), signal: controller.signal })) {
      if (event.type !== "BOOKMARK") bytes += event.item.bytes.length;
      if (++seen === changes) return;
    }
  });
  const figure = await measure(watchers * changes, async () => {
    const key = objects.key("default", "a");
    await objects.create(key, widget("a", 0));
    for (let size = 1; size < changes; size++) await objects.guaranteedUpdate(key, (current) => ({ ...current, size }));
    await Promise.all(readers);
  });
  controller.abort();
  if (bytes === 0) throw new Error("Nothing was delivered");
  return figure;
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
  console.log(JSON.stringify({ level: { ...level, compactPerRevision: compact, reopenMs }, fanOut }, undefined, 2));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
