/** Large values are read from the store again: what a cache keeps in memory is bounded by its budget. */
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { bytesLeftPerCall } from "../../testing/std/heap-growth.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import { prefixRange } from "../store.ts";
import { WatchCache } from "./cache.ts";
import { CacheMemory } from "./cache-memory.ts";
import { StoreFeed } from "./feed.ts";
import type { CacheEvent } from "./watch-event.ts";

const LARGE_BYTES = 10_000;
const large = (letter: string): string => letter.repeat(LARGE_BYTES);

/** tap's types want an Error. */
const EXPIRED = { name: "StatusError", status: { code: 410 } } as unknown as Error;

async function setUp(t: Test, budgetBytes = 12 * LARGE_BYTES) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const { signal } = new AbortController();
  let reads = 0;
  const { readVersion } = store;
  store.readVersion = (key, modified) => {
    reads++;
    return readVersion.call(store, key, modified);
  };
  const objects = new ObjectStore<Widget>({ store, kind: widgetKind, prefix: "/registry" });
  const memory = new CacheMemory(budgetBytes);
  const feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock, log: silentLogger });
  const indexes = { size: ({ size }: Widget) => String(size) };
  const open = () => new WatchCache({ feed, objects, clock, log: silentLogger, memory, indexes });
  t.teardown(() => feed[Symbol.asyncDispose]());
  const key = (name: string): string => objects.key("default", name);
  const create = (name: string, members: Partial<Widget>) => objects.create(key(name), makeWidget(name, members));
  const change = (name: string, members: Partial<Widget>) =>
    objects.guaranteedUpdate(key(name), (current) => ({ ...current, ...members }));
  return { clock, store, objects, memory, open, key, create, change, signal, reads: () => reads };
}

function render(event: CacheEvent<Widget>): string {
  if (event.type === "BOOKMARK") return event.type;
  const { color = "", metadata } = event.item.object;
  return `${event.type} ${metadata?.name} ${color.length} ${color[0]} ${JSON.parse(event.item.bytes.toString()).color[0]}`;
}

t.test("a cache keeps no more of large objects than its budget, and reads the others again", async (t) => {
  const { store, objects, memory, open, create, reads } = await setUp(t);
  for (let i = 0; i < 20; i++) await create(`before${i}`, { color: large("b") });
  await using cache = open();
  await cache.ready();
  t.equal(reads(), 0, "the first list needs no second read");
  for (let i = 0; i < 20; i++) await create(`w${i}`, { color: large("w") });
  await cache.waitFor(store.current());
  const inMemory = (): number => {
    const { items } = cache.list(objects.prefix());
    return items.filter(({ stored }) => stored !== undefined).length;
  };
  const kept = inMemory();
  t.ok(kept <= 4, `${kept} values are kept`);
  for (const { object, bytes, key } of cache.list(objects.prefix()).items) {
    t.ok(object.color === large(key.includes("before") ? "b" : "w") && bytes.length > LARGE_BYTES);
  }
  t.ok(reads() >= 30);
  t.ok(inMemory() <= 4);
  t.ok(memory.isTooLarge(40 * LARGE_BYTES));
});

t.test("superseded and deleted large objects are read for watchers until the store compacts them", async (t) => {
  const { store, open, key, create, change, signal, objects } = await setUp(t, 2 ** 30);
  await using cache = open();
  await cache.ready();
  await create("a", { color: large("1"), size: 1 });
  const from = store.current();
  await cache.waitFor(from);
  const live = cache.watch({ prefix: objects.prefix(), from, signal, index: { name: "size", value: "1" } });
  await change("a", { color: large("2") });
  await change("a", { color: large("3"), size: 2 });
  await objects.delete(key("a"));
  // The values are compacted before the cache receives the changes.
  await store.compact(store.current());
  await cache.waitFor(store.current());
  const late = cache.watch({ prefix: objects.prefix(), from: store.current(), signal });
  t.equal(cache.size, 0);
  await create("b", { color: large("4") });
  await change("b", { color: large("5") });
  await objects.delete(key("b"));
  await cache.waitFor(store.current());
  const events = async (watch: AsyncIterator<CacheEvent<Widget>>, count: number): Promise<string[]> => {
    const read: string[] = [];
    while (read.length < count) read.push(render((await watch.next()).value));
    return read;
  };
  t.same(await events(late, 3), ["ADDED b 10000 4 4", "MODIFIED b 10000 5 5", "DELETED b 10000 5 5"]);
  const selected = { prefix: objects.prefix(), from, signal, matches: ({ object }: { object: Widget }) => !!object };
  await t.rejects(cache.watch(selected).next(), EXPIRED, "the history has what the store has compacted");
  const first = (await live.next()).value;
  t.throws(() => first.item.object, { code: "compacted" });
});

t.test("a cache starts over when the store has compacted what it would send of an object", async (t) => {
  const { clock, store, open, key, create, change, signal, objects } = await setUp(t);
  const { watch } = store;
  let breaking = new AbortController();
  store.watch = async function* (range, from, until) {
    const broken = breaking.signal;
    yield* watch.call(store, range, from, AbortSignal.any([until, broken]));
    if (broken.aborted) throw new Error("The connection broke");
  };
  for (const name of ["changed", "removed", "same"]) await create(name, { color: large("1"), size: 1 });
  await using cache = open();
  await cache.ready();
  const watching = cache.watch({ prefix: objects.prefix(), from: store.current(), signal }).next();
  const failed = t.rejects(watching, EXPIRED);
  breaking.abort();
  breaking = new AbortController();
  await clock.advance(0);
  await change("changed", { size: 2 });
  await objects.delete(key("removed"));
  await store.compact(store.current());
  await clock.advance(10_000);
  await cache.waitFor(store.current());
  await failed;
  const names = (items: readonly { readonly key: string }[]) => items.map((item) => item.key.split("/").at(-1));
  t.same(names(cache.list(objects.prefix()).items), ["changed", "same"]);
  t.same(
    ["1", "2"].map((size) => names(cache.listIndexed("size", size).items)),
    [["same"], ["changed"]],
  );
});

t.test("a large object that is written, read and deleted leaves nothing in memory", async (t) => {
  const { store, objects, open, key, create, change } = await setUp(t, 2 ** 30);
  await using cache = open();
  await cache.ready();
  const left = await bytesLeftPerCall(async (call) => {
    await create(`w${call}`, { color: large("x") });
    await cache.waitFor(store.current());
    t.ok(cache.get(key(`w${call}`))!.bytes.length > LARGE_BYTES);
    await change(`w${call}`, { size: 2 });
    await objects.delete(key(`w${call}`));
    await cache.waitFor(store.current());
    await store.compact(store.current());
  });
  t.ok(left < 4096, `${left} bytes for each object`);
});
