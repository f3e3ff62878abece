import t, { type Test } from "tap";
import type { Status } from "../../api/status.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import { prefixRange, type Range, type Revision, type Store, StoreError, type WatchBatch } from "../store.ts";
import { WatchCache, type WatchCacheOptions } from "./cache.ts";
import { CacheMemory } from "./cache-memory.ts";
import { StoreFeed } from "./feed.ts";
import type { CacheEvent, Selectable } from "./watch-event.ts";
import type { WatchOptions } from "./watcher.ts";
import { WATCHER_QUEUE_MAX } from "./watcher.ts";

const indexes = { color: (widget: Widget) => widget.color };

/** What a rejection must match; tap's types want an Error. */
function refusal(status: Partial<Status>, message = /./): Error {
  return { name: "StatusError", status, message } as unknown as Error;
}

/** A store whose watches a test can break. */
function breakable(store: Store): Store & { breakWatches(): void } {
  let breaking = new AbortController();
  return {
    current: () => store.current(),
    get: (key, options) => store.get(key, options),
    list: (range, options) => store.list(range, options),
    scan: (range, options) => store.scan(range, options),
    readVersion: (key, modified) => store.readVersion(key, modified),
    create: (key, value, options) => store.create(key, value, options),
    update: (key, value, expected, options) => store.update(key, value, expected, options),
    delete: (key, expected) => store.delete(key, expected),
    compact: (before) => store.compact(before),
    async *watch(range: Range, from: Revision, signal: AbortSignal): AsyncIterable<WatchBatch> {
      const broken = breaking.signal;
      yield* store.watch(range, from, AbortSignal.any([signal, broken]));
      if (broken.aborted) throw new StoreError("unavailable", "The connection broke");
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    breakWatches() {
      breaking.abort();
      breaking = new AbortController();
    },
  };
}

async function setUp(t: Test, options: Partial<WatchCacheOptions<Widget>> = {}) {
  const clock = new FakeClock();
  const store = breakable(createMemoryStore({ clock }));
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  const feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock, log: silentLogger });
  const cache = new WatchCache({ feed, objects, clock, log: silentLogger, indexes, ...options });
  const controller = new AbortController();
  t.teardown(async () => {
    controller.abort();
    await cache[Symbol.asyncDispose]();
    await feed[Symbol.asyncDispose]();
    if (clock.pending > 0) throw new Error("A timer is left");
  });
  await cache.ready();
  const key = (name: string): string => objects.key("default", name);
  return {
    clock,
    store,
    objects,
    cache,
    key,
    create: (name: string, members?: Partial<Widget>) => objects.create(key(name), makeWidget(name, members)),
    change: (name: string, members: Partial<Widget>) =>
      objects.guaranteedUpdate(key(name), (current) => ({ ...current, ...members })),
    remove: (name: string) => objects.delete(key(name)),
    settled: () => cache.waitFor(store.current()),
    watch: (options: Partial<WatchOptions<Widget>> = {}) =>
      cache.watch({ prefix: objects.prefix(), signal: controller.signal, ...options }),
  };
}

function render(event: CacheEvent<Widget>): string {
  if (event.type === "BOOKMARK") return `BOOKMARK ${event.revision}${event.initialEventsEnd ? " end" : ""}`;
  const { metadata, color, size } = event.item.object;
  if (metadata?.resourceVersion !== String(event.item.revision)) throw new Error("Versions differ");
  return `${event.type} ${metadata.name} ${color ?? size ?? ""}@${event.revision}`;
}

async function take(watch: AsyncIterator<CacheEvent<Widget>>, count: number): Promise<string[]> {
  const events: string[] = [];
  while (events.length < count) {
    const { done, value } = await watch.next();
    if (done === true) break;
    events.push(render(value));
  }
  return events;
}

t.test("WatchCache lists the objects of the store in key order with a revision", async (t) => {
  const { cache, objects, create, change, remove, settled, key, store } = await setUp(t);
  await create("b", { color: "red" });
  await create("a", { color: "blue" });
  await create("c");
  await change("a", { color: "green" });
  await remove("c");
  await settled();
  const { items, revision } = cache.list(objects.prefix());
  t.same(
    items.map((item) => [item.object.metadata?.name, item.object.color, item.revision]),
    [
      ["a", "green", 5],
      ["b", "red", 2],
    ],
  );
  t.equal(revision, store.current());
  t.equal(cache.revision(), revision);
  t.same(cache.list(objects.prefix("other")).items, []);
  t.equal(cache.get(key("c")), undefined);
  const a = cache.get(key("a"))!;
  t.ok(Object.isFrozen(a.object));
  t.match(a.bytes.toString(), /^\{"metadata":\{"name":"a",.*"resourceVersion":"5".*\},"color":"green"\}$/);
  t.notMatch(a.bytes.toString(), /"kind"|"apiVersion"/);
});

t.test("WatchCache encodes an object once for all reads and watchers", async (t) => {
  const { cache, objects, create, watch, settled, key, remove } = await setUp(t);
  const watches = Array.from({ length: 10 }, () => watch());
  await create("a");
  await settled();
  const buffers = new Set<Buffer>([cache.get(key("a"))!.bytes, cache.list(objects.prefix()).items[0]!.bytes]);
  const removed = new Set<Buffer>();
  const events = new Set<unknown>();
  const seen = async (into: Set<Buffer>): Promise<void> => {
    for (const watching of watches) {
      const { value } = await watching.next();
      events.add(value);
      into.add(value.item.bytes);
    }
  };
  await seen(buffers);
  await remove("a");
  await seen(removed);
  t.equal(buffers.size, 1);
  t.equal(removed.size, 1);
  t.equal(events.size, 2, "events are shared too");
});

t.test(
  "WatchCache evicts objects and encodings above the memory limits, and creates them again at the next read",
  async (t) => {
    const memory = new CacheMemory(18_000);
    let decoded = 0;
    const { cache, objects, create, change, settled, key, watch } = await setUp(t, { memory });
    const decode = objects.decode.bind(objects);
    objects.decode = (item) => {
      decoded++;
      return decode(item);
    };
    for (let i = 0; i < 100; i++) await create(`w${i}`, { size: i, color: "red" });
    await settled();
    t.equal(decoded, 100, "each is looked at once when it comes");
    const sizes = (): unknown =>
      cache.list(objects.prefix()).items.map(({ object, bytes }) => [object.size, bytes.length]);
    const first = sizes();
    t.same(sizes(), first, "they come back as they were");
    t.ok(decoded > 200, `${decoded} times decoded`);
    const before = decoded;
    for (let i = 0; i < 10; i++) t.equal(cache.get(key("w7"))!.object.size, 7);
    t.ok(decoded - before <= 1, "what is in use stays");
    t.ok(memory.history.bytes <= 3000, `${memory.history.bytes}`);
    await t.rejects(watch({ from: 2 as Revision }).next(), refusal({ code: 410 }));
    const lazy = watch({ from: cache.revision() });
    for (let size = 0; size < 180; size++) await change("w0", { size });
    await settled();
    t.ok(memory.queues.bytes <= 3000);
    await t.rejects(lazy.next(), refusal({ code: 410 }), "the watcher with the largest queue is closed");
  },
);

t.test("watch() without from starts with all objects and a bookmark, then sends changes", async (t) => {
  const { create, watch, settled } = await setUp(t);
  await create("b", { color: "red" });
  await create("a", { color: "red" });
  await create("x", { color: "blue" });
  await settled();
  const watching = watch({ initialEventsEnd: true, matches: ({ object }) => object.color === "red" });
  await create("c", { color: "red" });
  t.same(await take(watching, 4), ["ADDED a red@3", "ADDED b red@2", "BOOKMARK 4 end", "ADDED c red@5"]);
});

t.test("watch() from a revision replays later changes, then sends new ones", async (t) => {
  const { create, change, remove, watch, settled } = await setUp(t);
  await create("a", { size: 1 });
  await change("a", { size: 2 });
  await remove("a");
  await settled();
  const watching = watch({ from: 2 as Revision });
  await create("b");
  t.same(await take(watching, 3), ["MODIFIED a 2@3", "DELETED a 2@4", "ADDED b @5"]);
  t.same(await take(watch({ from: 1 as Revision }), 1), ["ADDED a 1@2"]);
});

t.test("watch() may start at the revision of a write that the cache does not have yet", async (t) => {
  const { create, watch, store } = await setUp(t);
  await create("a");
  const watching = watch({ from: store.current() });
  await create("b");
  t.same(await take(watching, 1), ["ADDED b @3"]);
});

t.test("watch() sends ADDED and DELETED for objects that start and stop to match its selector", async (t) => {
  const { create, change, remove, watch } = await setUp(t);
  const red = watch({ matches: ({ object }) => object.color === "red" });
  const indexed = watch({ index: { name: "color", value: "red" } });
  await create("a", { color: "blue" });
  await change("a", { color: "red" });
  await change("a", { size: 7 });
  await change("a", { color: "blue" });
  await remove("a");
  await create("b", { color: "red" });
  const expected = ["ADDED a red@3", "MODIFIED a red@4", "DELETED a red@5", "ADDED b red@7"];
  t.same(await take(red, 4), expected);
  t.same(await take(indexed, 4), expected);
});

t.test("watch() sends only changes below its prefix", async (t) => {
  const { objects, create, watch } = await setUp(t);
  const watching = watch({ prefix: objects.prefix("other") });
  await create("a");
  await objects.create(objects.key("other", "b"), { metadata: { name: "b", namespace: "other" } });
  t.same(await take(watching, 1), ["ADDED b @3"]);
});

t.test("listIndexed() finds objects by value and follows their changes", async (t) => {
  const { cache, create, change, remove, settled } = await setUp(t);
  for (const name of ["c", "a", "b"]) await create(name, { color: "red" });
  await create("d");
  await change("b", { color: "blue" });
  await remove("c");
  await settled();
  const names = (value: string): unknown => cache.listIndexed("color", value).items.map((i) => i.object.metadata?.name);
  t.same([names("red"), names("blue"), names("green")], [["a"], ["b"], []]);
  t.throws(() => cache.listIndexed("shape", "round"), { message: /^Cannot use index "shape"/ });
});

t.test("waitFor() resolves at a revision of a write to another kind", async (t) => {
  const { cache, store } = await setUp(t);
  const revision = await store.create("/registry/other/x", Buffer.from("x"));
  await cache.waitFor(revision);
  t.equal(cache.revision(), revision);
  const controller = new AbortController();
  const waiting = cache.waitFor((revision + 100) as Revision, controller.signal);
  controller.abort(new Error("deadline"));
  await t.rejects(waiting, { message: "deadline" });
});

t.test("watch() sends bookmarks about once a minute when requested", async (t) => {
  const { clock, create, watch, store, cache } = await setUp(t);
  const watching = watch({ from: store.current(), bookmarks: true });
  const without = watch({ from: store.current() });
  await clock.advance(59_000);
  const revision = await store.create("/registry/other/x", Buffer.from("x"));
  await cache.waitFor(revision);
  await clock.advance(61_000);
  t.same(await take(watching, 1), [`BOOKMARK ${revision}`], "one that waits is replaced by the next");
  await create("a");
  t.same(await take(watching, 1), ["ADDED a @3"]);
  t.same(await take(without, 1), ["ADDED a @3"]);
  await watching.return?.();
  await clock.advance(60_000);
});

t.test("watch() from before the history fails with 410", async (t) => {
  const { create, change, watch, settled } = await setUp(t, { history: { items: 3, bytes: 1e6 } });
  await create("a", { size: 0 });
  for (let size = 1; size < 6; size++) await change("a", { size });
  await settled();
  await t.rejects(
    watch({ from: 3 as Revision }).next(),
    refusal({ code: 410, reason: "Expired", message: "too old resource version: 3 (4)" }),
  );
  t.same(await take(watch({ from: 4 as Revision }), 3), ["MODIFIED a 3@5", "MODIFIED a 4@6", "MODIFIED a 5@7"]);
});

t.test("a slow watcher ends with 410, and does not delay others", async (t) => {
  const { create, change, watch, settled, cache } = await setUp(t);
  const slow = watch();
  const quick = watch();
  await create("a", { size: 0 });
  t.same(await take(slow, 1), ["ADDED a @2"]);
  for (let size = 1; size <= WATCHER_QUEUE_MAX + 5; size++) {
    await change("a", { size });
    if (size % 100 === 0) await take(quick, 100);
  }
  await settled();
  await t.rejects(slow.next(), refusal({ code: 410 }, /1024 changes/));
  t.equal(cache.counts.overflowedWatches, 1);
  await take(watch(), 1);
  t.equal(cache.counts.initialEvents, 1, "of the last one, since there was no object before");
  t.same(await take(watch({ from: 2 as Revision }), 1), ["MODIFIED a 1@3"]);
  await take(quick, 29);
  t.same(await take(quick, 1), [`MODIFIED a ${WATCHER_QUEUE_MAX + 5}@${WATCHER_QUEUE_MAX + 7}`]);
});

t.test("a queue of current objects is not limited in bytes, and one of superseded objects is", async (t) => {
  const bytesMax = 100_000;
  const memory = new CacheMemory(6 * bytesMax);
  const { create, change, watch, settled } = await setUp(t, { memory });
  const color = "x".repeat(10_000);
  const watches = [watch(), watch()];
  // Ten times the bytes.
  for (let i = 0; i < 100; i++) await create(`w${i}`, { color });
  await settled();
  t.equal(memory.queues.bytes, 0);
  for (const watcher of watches) t.equal((await take(watcher, 100)).length, 100);
  // Superseded objects count once for both.
  for (let i = 0; i < 9; i++) await change("w0", { color: `${color}${i}` });
  await settled();
  t.ok(memory.queues.bytes > 0.7 * bytesMax && memory.queues.bytes <= bytesMax, `${memory.queues.bytes}`);
  for (const watcher of watches) t.equal((await take(watcher, 9)).length, 9);
  t.equal(memory.queues.bytes, 0);
  for (let i = 0; i < 20; i++) await change("w0", { color: `${color}${i}` });
  await settled();
  for (const watcher of watches) await t.rejects(watcher.next(), refusal({ code: 410 }, /changes of \d{5,} bytes/));
  t.equal(memory.queues.bytes, 0);
});

t.test("watch() ends when its signal aborts, and fails when the cache is closed", async (t) => {
  const { cache, watch, create } = await setUp(t);
  const controller = new AbortController();
  const aborted = watch({ signal: controller.signal });
  const next = aborted.next();
  controller.abort();
  t.same(await next, { done: true, value: undefined });
  await create("a");
  t.same(await aborted.next(), { done: true, value: undefined });
  t.same(await watch({ signal: controller.signal }).next(), { done: true, value: undefined });
  const open = watch({ from: 2 as Revision }).next();
  const waiting = cache.waitFor(1000 as Revision);
  await Promise.all([
    cache[Symbol.asyncDispose](),
    t.rejects(open, { code: "closed" }),
    t.rejects(waiting, { code: "closed" }),
  ]);
  await t.rejects(watch().next(), { code: "closed" });
  await t.rejects(cache.waitFor(1000 as Revision), { code: "closed" });
});

t.test("a cache lists again and sends the differences after the watch of the store failed", async (t) => {
  const { clock, cache, create, change, remove, watch, store, settled, key } = await setUp(t);
  for (const name of ["removed", "kept", "changed"]) await create(name, { size: 1 });
  await settled();
  const before = store.current();
  const watching = watch({ from: before });
  store.breakWatches();
  await change("changed", { size: 2 });
  await remove("removed");
  await create("new", { size: 1 });
  t.equal(cache.revision(), before, "the cache is behind");
  await clock.advance(100);
  await settled();
  t.same(await take(watching, 3), [
    `DELETED removed 1@${before}`,
    `MODIFIED changed 2@${before + 1}`,
    `ADDED new 1@${before + 3}`,
  ]);
  t.equal(cache.get(key("removed")), undefined);
  await t.rejects(watch({ from: before }).next(), refusal({ code: 410 }), "no client can resume from before");
  await create("live");
  t.same(await take(watching, 1), [`ADDED live @${before + 4}`]);
});

t.test("reads and watches of a cache over a damaged store fail until a list succeeds", async (t) => {
  const clock = new FakeClock();
  const store = breakable(createMemoryStore({ clock }));
  const damage = new StoreError("corrupt", "Cannot read record 7");
  let failing = true;
  const { scan } = store;
  store.scan = async function* (range) {
    if (failing) throw damage;
    yield* scan(range);
  };
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  await using feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock, log: silentLogger });
  await using cache = new WatchCache({ feed, objects, clock, log: silentLogger, indexes });
  const { signal } = new AbortController();
  const all = { prefix: objects.prefix(), signal };
  const checkDamaged = async (waits: readonly Promise<unknown>[]): Promise<void> => {
    const outcomes = await Promise.allSettled([...waits, cache.ready(), cache.waitFor(store.current())]);
    outcomes.push(...(await Promise.allSettled([cache.waitFor(0 as Revision), cache.watch(all).next()])));
    for (const outcome of outcomes) t.same(outcome, { status: "rejected", reason: damage });
    t.notOk(cache.hasReached(0 as Revision));
  };
  // Two reads that wait for the first list.
  await checkDamaged([cache.ready(), cache.waitFor(store.current())]);
  failing = false;
  await clock.advance(60_000);
  await cache.ready();
  t.ok(cache.hasReached(store.current()));
  const watching = cache.watch(all).next();
  watching.catch(() => {});
  failing = true;
  store.breakWatches();
  await clock.advance(100);
  await checkDamaged([watching]);
  failing = false;
  await clock.advance(60_000);
  await cache.waitFor(store.current());
});

t.test("an object that cannot be decoded is skipped until it is valid again", async (t) => {
  const { cache, create, store, settled, key, watch, objects } = await setUp(t);
  await create("a", { size: 1 });
  await settled();
  const watching = watch({ from: store.current() });
  const good = (await store.get(key("a")))!;
  const bad = await store.update(key("a"), Buffer.from("noise"), good.modified);
  await settled();
  t.same(cache.list(objects.prefix()).items, []);
  await store.update(key("a"), good.value, bad);
  t.same(await take(watching, 2), ["DELETED a 1@3", "ADDED a 1@4"]);
});

/** Applies events to a list, as the cache of a client does. */
function play(state: Map<string, string>, event: CacheEvent<Widget>): void {
  if (event.type === "BOOKMARK") return;
  const name = event.item.object.metadata!.name!;
  if (event.type === "DELETED") {
    if (!state.delete(name)) throw new Error(`${name} was deleted twice`);
  } else {
    if ((event.type === "ADDED") === state.has(name)) throw new Error(`${event.type} ${name} makes no sense`);
    state.set(name, event.item.bytes.toString());
  }
}

t.test("random writes: every watch from any revision results in the objects of a list", async (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  t.comment(`SEED=${seed}`);
  const random = seededRandom(seed);
  const pick = (count: number): number => Math.floor(random.fraction() * count);
  const { cache, objects, create, change, remove, watch, settled, key, store, clock } = await setUp(t);
  const selectors = [
    {},
    { matches: ({ object }: Selectable<Widget>) => (object.size ?? 0) % 2 === 0 },
    { index: { name: "color", value: "red" } },
    { index: { name: "color", value: "red" }, matches: ({ object }: Selectable<Widget>) => (object.size ?? 0) > 3 },
  ];
  const shown = ({ matches, index }: Partial<WatchOptions<Widget>>): Map<string, string> => {
    const state = new Map<string, string>();
    for (const item of cache.list(objects.prefix()).items) {
      if (index !== undefined && item.object.color !== index.value) continue;
      if (matches?.(item) !== false) state.set(item.object.metadata!.name!, item.bytes.toString());
    }
    return state;
  };
  const clients: {
    selector: Partial<WatchOptions<Widget>>;
    state: Map<string, string>;
    watching: AsyncIterator<CacheEvent<Widget>>;
  }[] = [];
  for (let step = 0; step < 400; step++) {
    const name = `w${pick(8)}`;
    const members = { color: pick(2) === 0 ? "red" : "blue", size: pick(6) };
    if ((await store.get(key(name))) === undefined) await create(name, members);
    else if (pick(3) === 0) await remove(name);
    else await change(name, members);
    if (pick(8) === 0) {
      if (pick(2) === 0) await clock.advance(200).then(settled);
      const selector = selectors[pick(selectors.length)]!;
      const fresh = pick(2) === 0;
      const from = fresh ? undefined : cache.revision();
      clients.push({ selector, state: fresh ? new Map() : shown(selector), watching: watch({ ...selector, from }) });
    }
    if (pick(100) === 0) {
      store.breakWatches();
      if (pick(2) === 0) await clock.advance(200);
    }
  }
  await clock.advance(1000);
  await settled();
  const last = await create("last", { color: "red", size: 4 });
  await settled();
  for (const { selector, state, watching } of clients) {
    while (!state.has("last")) play(state, (await watching.next()).value);
    t.same([...state].sort(), [...shown(selector)].sort());
  }
  t.ok(clients.length > 20 && last.metadata?.resourceVersion === String(store.current()), `${clients.length} watches`);
});
