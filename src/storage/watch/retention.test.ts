/** What the watch cache keeps in memory: nothing of deleted and superseded objects beyond its history. */
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { bytesLeftPerCall, collectGarbage, LEAK_ROUNDS } from "../../testing/std/heap-growth.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import { prefixRange, type ScanPart } from "../store.ts";
import { WatchCache } from "./cache.ts";
import { CacheMemory } from "./cache-memory.ts";
import { StoreFeed } from "./feed.ts";
import type { CacheEvent } from "./watch-event.ts";

const HISTORY_ITEMS = 8;
/** Bytes of each object: its copy, its JSON or a frame is more than the bound. */
const OBJECT_BYTES = 8192;
const LEFT_MAX = 4096;

function setUp(t: Test) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock, log: silentLogger });
  // The least that the pool keeps is more than the test reads: what is kept is kept by references.
  const memory = new CacheMemory(2 ** 31);
  const open = (kind = widgetKind) => {
    const objects = new ObjectStore<Widget>({ store, kind, prefix: "/registry" });
    const history = { items: HISTORY_ITEMS, bytes: 2 ** 30 };
    const cache = new WatchCache({ feed, objects, clock, log: silentLogger, history, memory });
    return { objects, cache };
  };
  t.teardown(() => feed[Symbol.asyncDispose]());
  return { clock, store, feed, memory, open };
}

/** Reads the objects and the encodings of all events until the watch ends. */
async function readAll(events: AsyncIterable<CacheEvent<Widget>>): Promise<number> {
  let bytes = 0;
  try {
    for await (const event of events) {
      if (event.type !== "BOOKMARK") bytes += event.item.bytes.length + (event.item.object.size ?? 0);
    }
  } catch {
    // The cache was closed.
  }
  return bytes;
}

const color = (call: number) => String(call).padEnd(OBJECT_BYTES, "x");

t.test("a watched object that is updated and deleted leaves nothing in a cache but its history", async (t) => {
  const { store, memory, open } = setUp(t);
  const { cache, objects } = open();
  await cache.ready();
  const controller = new AbortController();
  const { signal } = controller;
  const prefix = objects.prefix();
  const selected = (item: { object: Widget }) => item.object.size === 1;
  const reading = [{}, {}, { matches: selected }].map((options) =>
    readAll(cache.watch({ prefix, signal, ...options })),
  );
  const left = await bytesLeftPerCall(async (call) => {
    const key = objects.key("default", `w${call}`);
    await objects.create(key, makeWidget(`w${call}`, { color: color(call), size: 1 }));
    await objects.guaranteedUpdate(key, (current) => ({ ...current, size: 2 }));
    await objects.guaranteedUpdate(key, (current) => ({ ...current, size: 1 }));
    await objects.delete(key);
    await cache.waitFor(store.current());
    await new Promise((resolve) => setImmediate(resolve));
    await store.compact(store.current());
  });
  t.ok(left < LEFT_MAX, `${left} bytes for each object`);
  // A change has at most a previous, a current and a deleted state.
  t.ok(memory.objects.size <= 3 * HISTORY_ITEMS, `${memory.objects.size} objects`);
  controller.abort();
  t.ok((await Promise.all(reading)).every((bytes) => bytes > LEAK_ROUNDS * OBJECT_BYTES));
  await cache[Symbol.asyncDispose]();
});

t.test("a closed cache leaves neither its objects nor its kind in memory", async (t) => {
  const { store, memory, open } = setUp(t);
  const kinds: WeakRef<object>[] = [];
  let read = 0;
  const left = await bytesLeftPerCall(async (call) => {
    const kind = { ...widgetKind };
    kinds.push(new WeakRef(kind));
    const { cache, objects } = open(kind);
    await cache.ready();
    const reading = readAll(cache.watch({ prefix: objects.prefix(), signal: new AbortController().signal }));
    const key = objects.key("default", "w");
    await objects.create(key, makeWidget("w", { color: color(call) }));
    await objects.guaranteedUpdate(key, (current) => ({ ...current, size: 2 }));
    await objects.delete(key);
    await objects.create(key, makeWidget("w", { color: color(call) }));
    await cache.waitFor(store.current());
    await cache[Symbol.asyncDispose]();
    read += await reading;
    await objects.delete(key);
    await store.compact(store.current());
  });
  t.ok(left < LEFT_MAX, `${left} bytes for each cache`);
  t.ok(read > LEAK_ROUNDS * OBJECT_BYTES);
  t.same([memory.objects.size, memory.history.bytes], [0, 0]);
  await collectGarbage();
  t.ok(kinds.filter((kind) => kind.deref() !== undefined).length <= 1);
});

t.test("a cache does not keep the list that it started with", async (t) => {
  const { store, open } = setUp(t);
  const { scan } = store;
  let first: WeakRef<ScanPart> | undefined;
  store.scan = async function* (range) {
    for await (const part of scan.call(store, range)) {
      first ??= new WeakRef(part);
      yield part;
    }
  };
  const { cache, objects } = open();
  await objects.create(objects.key("default", "w"), makeWidget("w"));
  await cache.ready();
  await collectGarbage();
  t.ok(first !== undefined && first.deref() === undefined);
  await cache[Symbol.asyncDispose]();
});
