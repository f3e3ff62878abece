/**
 * The test suite of every engine of `Store`. The test of an engine passes its factory:
 *
 *     t.test("createMemoryStore() is a Store", (t) =>
 *       testStore(t, async (clock) => createMemoryStore({ clock }), { isEmbedded: true }),
 *     );
 */
import type { Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import {
  type KeyValue,
  prefixRange,
  type Range,
  type Revision,
  type Store,
  type StoreError,
  type StoreErrorCode,
  type WatchEvent,
} from "../../storage/store.ts";
import { FakeClock } from "../std/fake-clock.ts";

/** Creates an empty store. */
export type StoreFactory = (clock: FakeClock) => Promise<Store>;

export interface EngineTraits {
  /**
   * Whether the engine is part of this process: values expire by the given clock, `readVersion` returns those of the
   * history, and a watch reads the history at the pace of its reader.
   */
  readonly isEmbedded: boolean;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const ALL = prefixRange("/");

export async function testStore(t: Test, factory: StoreFactory, traits: EngineTraits): Promise<void> {
  const suite = (name: string, run: (t: Test, store: Store, clock: FakeClock) => Promise<void>): Promise<unknown> =>
    t.test(name, async (t) => {
      const clock = new FakeClock();
      await using store = await factory(clock);
      await run(t, store, clock);
    });
  await suite("create() fails for an existing key", testCreate);
  await suite("update() writes over the expected revision only", testUpdate);
  await suite("delete() removes the expected revision only", testDelete);
  await suite("values are returned byte for byte, also empty and large ones", testValues);
  await suite("revisions increase by one with every write, and not with a failed one", testRevisions);
  await suite("list() returns a range in key order, with limit and remaining count", testList);
  await suite("scan() returns the latest state of a range in parts of one snapshot", testScan);
  if (traits.isEmbedded)
    await suite("readVersion() returns the value of a revision until it is compacted", testReadVersion);
  await suite("get() and list() read at older revisions", testHistory);
  await suite("watch() delivers each change after its revision once, in order", testWatch);
  await suite("watch() reports puts and deletes with the previous value", testWatchEvents);
  await suite("watch() reports changes of its range only, and the progress of others", testWatchRange);
  await suite("watch() ends when its signal aborts", testAbort);
  await suite("watch() fails for a future revision", testFuture);
  await suite("compact() deletes history and keeps current values", testCompaction);
  if (traits.isEmbedded) await suite("watch() fails when compaction overtakes it", testSlowWatch);
  await suite("concurrent writes: one succeeds, the others fail with the current value", testConcurrency);
  await suite("random writes: history, current values and watches agree", testRandom);
  if (traits.isEmbedded) {
    await suite("ttlSeconds: the value is deleted with an event of its own", testTtl);
    await suite("ttlSeconds: a later write resets it", testTtlOverwritten);
  }
  await testClosed(t, factory);
}

async function failure(t: Test, promise: Promise<unknown>, code: StoreErrorCode): Promise<StoreError> {
  try {
    await promise;
  } catch (error) {
    t.match(error, { name: "StoreError", code }, `fails with ${code}`);
    return error as StoreError;
  }
  t.fail(`fails with ${code}`);
  throw new Error("Expected a failure");
}

const text = (item: KeyValue | undefined): string | undefined => item && Buffer.from(item.value).toString();
const texts = (items: readonly KeyValue[]): string[] => items.map((item) => `${item.key}=${text(item)}`);

async function testCreate(t: Test, store: Store): Promise<void> {
  t.equal(await store.get("/a"), undefined);
  const revision = await store.create("/a", bytes("one"));
  t.equal(store.current(), revision);
  const item = await store.get("/a");
  t.equal(text(item), "one");
  t.equal(item?.modified, revision);
  t.equal(item?.created, revision);
  const error = await failure(t, store.create("/a", bytes("two")), "exists");
  t.equal(text(error.current), "one");
  t.match(error.message, '"/a"');
}

async function testUpdate(t: Test, store: Store): Promise<void> {
  const first = await store.create("/a", bytes("one"));
  const second = await store.update("/a", bytes("two"), first);
  const item = await store.get("/a");
  t.same([text(item), item?.modified, item?.created], ["two", second, first]);
  const error = await failure(t, store.update("/a", bytes("three"), first), "conflict");
  t.same([text(error.current), error.current?.modified], ["two", second]);
  const missing = await failure(t, store.update("/b", bytes("x"), first), "conflict");
  t.equal(missing.current, undefined);
}

async function testDelete(t: Test, store: Store): Promise<void> {
  const first = await store.create("/a", bytes("one"));
  const second = await store.update("/a", bytes("two"), first);
  const error = await failure(t, store.delete("/a", first), "conflict");
  t.equal(text(error.current), "two");
  const deleted = await store.delete("/a", second);
  t.equal(deleted, store.current());
  t.equal(await store.get("/a"), undefined);
  t.equal((await failure(t, store.delete("/a", second), "conflict")).current, undefined);
  const again = await store.create("/a", bytes("three"));
  t.equal((await store.get("/a"))?.created, again, "created anew");
}

async function testValues(t: Test, store: Store): Promise<void> {
  const values = [new Uint8Array(0), Uint8Array.from({ length: 256 }, (_, i) => i), Buffer.alloc(1_500_000, "x")];
  for (const [i, value] of values.entries()) {
    const key = `/values/ü-${i}`;
    const expected = Uint8Array.from(value);
    await store.create(key, expected);
    t.ok(Buffer.from((await store.get(key))!.value).equals(value), `${value.length} bytes`);
  }
  t.same(
    (await store.list(prefixRange("/values/"))).items.map((item) => item.value.length),
    values.map((value) => value.length),
  );
}

async function testRevisions(t: Test, store: Store): Promise<void> {
  const start = store.current();
  t.ok(start >= 1);
  const first = await store.create("/a", bytes("1"));
  t.equal(first, start + 1);
  await store.create("/a", bytes("2")).catch(() => {});
  await store.update("/b", bytes("2"), first).catch(() => {});
  t.equal(await store.create("/b", bytes("2")), start + 2);
  t.equal(await store.delete("/a", first), start + 3);
  t.equal(store.current(), start + 3);
}

async function testScan(t: Test, store: Store): Promise<void> {
  const read = async (range: Range, revision?: Revision): Promise<unknown> => {
    const items: KeyValue[] = [];
    const revisions = new Set<number>();
    for await (const part of store.scan(range, { revision })) {
      items.push(...part.items);
      revisions.add(part.revision);
    }
    return { items, revisions: [...revisions] };
  };
  const all = prefixRange("/a/");
  const empty = store.current();
  t.same(await read(all), { items: [], revisions: [empty] });
  const large = Buffer.alloc(100_000, "x");
  for (let i = 0; i < 40; i++) await store.create(`/a/${i % 7}/${i}`, large);
  await store.create("/b/1", large);
  const before = { items: (await store.list(all)).items, revisions: [store.current()] };
  const first = (await store.get("/a/0/0"))!;
  await store.update(first.key, bytes("new"), first.modified);
  await store.delete("/a/1/1", (await store.get("/a/1/1"))!.modified);
  const expected = { items: (await store.list(all)).items, revisions: [store.current()] };
  t.equal(expected.items.length, 39);
  t.same(await read(all), expected);
  t.same(await read({ from: "/c", to: "/a" }), { items: [], revisions: [store.current()] });
  t.same(await read(all, before.revisions[0]), before);
  await store.compact(store.current());
  await t.rejects(read(all, empty), { code: "compacted" });
  let parts = 0;
  for await (const part of store.scan(all)) {
    // Writes during the scan belong to no part.
    if (parts++ === 0) await store.create("/a/9", large);
    t.notOk(part.items.some(({ key }) => key === "/a/9"));
  }
}

async function testReadVersion(t: Test, store: Store): Promise<void> {
  const text = (key: string, modified: Revision): string | undefined => {
    const value = store.readVersion(key, modified);
    return value && Buffer.from(value).toString();
  };
  const first = await store.create("/a", bytes("1"));
  const second = await store.update("/a", bytes("2"), first);
  const third = await store.delete("/a", second);
  const again = await store.create("/a", bytes("4"));
  await store.create("/b", bytes("5"));
  const read = (): unknown => [first, second, third, again].map((revision) => text("/a", revision));
  t.same(read(), ["1", "2", undefined, "4"]);
  t.same([text("/b", first), text("/c", first)], [undefined, undefined]);
  await store.compact(third);
  t.same(read(), [undefined, undefined, undefined, "4"]);
}

async function testList(t: Test, store: Store): Promise<void> {
  for (const key of ["/b/2", "/a/3", "/a/1", "/a/2", "/a", "/a0", "/a/10"])
    await store.create(key, bytes(key.slice(1)));
  const range = prefixRange("/a/");
  const all = await store.list(range);
  t.same(texts(all.items), ["/a/1=a/1", "/a/10=a/10", "/a/2=a/2", "/a/3=a/3"]);
  t.same([all.revision, all.remaining], [store.current(), 0]);
  const first = await store.list(range, { limit: 3 });
  t.same([first.items.map((item) => item.key), first.remaining], [["/a/1", "/a/10", "/a/2"], 1]);
  const rest = await store.list({ ...range, from: "/a/2\0" }, { limit: 3 });
  t.same([rest.items.map((item) => item.key), rest.remaining], [["/a/3"], 0]);
  const none = await store.list({ from: "/c", to: "/d" });
  t.same([none.items, none.remaining], [[], 0]);
  t.same((await store.list(range, { limit: 0 })).remaining, 4);
}

async function testHistory(t: Test, store: Store): Promise<void> {
  const a1 = await store.create("/a", bytes("a1"));
  const b1 = await store.create("/b", bytes("b1"));
  const a2 = await store.update("/a", bytes("a2"), a1);
  const deleted = await store.delete("/b", b1);
  const c1 = await store.create("/c", bytes("c1"));
  const b2 = await store.create("/b", bytes("b2"));
  const itemsAt = async (revision: Revision): Promise<string[]> => {
    const page = await store.list(ALL, { revision });
    t.equal(page.revision, revision);
    return texts(page.items);
  };
  t.same(await itemsAt((a1 - 1) as Revision), []);
  t.same(await itemsAt(a1), ["/a=a1"]);
  t.same(await itemsAt(b1), ["/a=a1", "/b=b1"]);
  t.same(await itemsAt(a2), ["/a=a2", "/b=b1"]);
  t.same(await itemsAt(deleted), ["/a=a2"]);
  t.same(await itemsAt(c1), ["/a=a2", "/c=c1"]);
  t.same(await itemsAt(b2), ["/a=a2", "/b=b2", "/c=c1"]);
  const limited = await store.list(ALL, { revision: a2, limit: 1 });
  t.same([texts(limited.items), limited.remaining], [["/a=a2"], 1]);
  t.equal(text(await store.get("/b", { revision: a2 })), "b1");
  t.equal(await store.get("/b", { revision: deleted }), undefined);
  t.equal((await store.get("/b"))?.created, b2);
  t.equal((await store.get("/a", { revision: b2 }))?.modified, a2);
  await failure(t, store.get("/a", { revision: (b2 + 1) as Revision }), "future-revision");
  await failure(t, store.list(ALL, { revision: (b2 + 1) as Revision }), "future-revision");
}

/** Collects changes until `count` of them, or the revision `until`, have come. */
async function collect(
  store: Store,
  range: Range,
  from: Revision,
  until: { readonly count?: number; readonly revision?: Revision },
): Promise<WatchEvent[]> {
  const controller = new AbortController();
  const events: WatchEvent[] = [];
  let reached = from;
  for await (const batch of store.watch(range, from, controller.signal)) {
    for (const event of batch.events) {
      if (revisionOf(event) <= reached || revisionOf(event) > batch.revision) throw new Error("Order is broken");
      reached = revisionOf(event);
      events.push(event);
    }
    if (batch.revision < reached) throw new Error("Progress is broken");
    reached = batch.revision;
    if (events.length >= (until.count ?? Number.POSITIVE_INFINITY)) break;
    if (reached >= (until.revision ?? Number.POSITIVE_INFINITY)) break;
  }
  controller.abort();
  return events;
}

function revisionOf(event: WatchEvent): Revision {
  return event.type === "put" ? event.item.modified : event.revision;
}

async function testWatch(t: Test, store: Store): Promise<void> {
  const from = await store.create("/x", bytes("before"));
  const early = collect(store, ALL, from, { count: 200 });
  const writes: Revision[] = [];
  for (let i = 0; i < 100; i++) writes.push(await store.create(`/a/${i}`, bytes(String(i))));
  const middle = collect(store, ALL, writes[49]!, { count: 150 });
  const concurrent = Array.from({ length: 100 }, (_, i) => store.create(`/b/${i}`, bytes(String(i))));
  // Concurrent writes have any order.
  writes.push(...(await Promise.all(concurrent)).sort((a, b) => a - b));
  const late = collect(store, ALL, from, { count: 200 });
  t.same((await early).map(revisionOf), writes);
  t.same((await middle).map(revisionOf), writes.slice(50));
  t.same((await late).map(revisionOf), writes);
}

async function testWatchEvents(t: Test, store: Store): Promise<void> {
  const from = store.current();
  const a1 = await store.create("/a", bytes("a1"));
  const a2 = await store.update("/a", bytes("a2"), a1);
  const deleted = await store.delete("/a", a2);
  const live = collect(store, ALL, deleted, { count: 1 });
  const a3 = await store.create("/a", bytes("a3"));
  for (const events of [await collect(store, ALL, from, { count: 4 }), await collect(store, ALL, from, { count: 4 })]) {
    t.equal(events.length, 4);
    const [create, update, remove, again] = events;
    t.match(create, { type: "put", item: { key: "/a", modified: a1, created: a1 }, previous: undefined });
    t.match(update, { type: "put", item: { modified: a2, created: a1 }, previous: { modified: a1, created: a1 } });
    t.match(remove, { type: "delete", key: "/a", revision: deleted, previous: { modified: a2, created: a1 } });
    t.match(again, { type: "put", item: { modified: a3, created: a3 }, previous: undefined });
    t.equal(create?.type === "put" && text(create.item), "a1");
    t.equal(text(update?.previous), "a1");
    t.equal(text(remove?.previous), "a2");
  }
  t.match(await live, [{ type: "put", item: { modified: a3 } }]);
}

async function testWatchRange(t: Test, store: Store): Promise<void> {
  const from = store.current();
  await store.create("/a/1", bytes("1"));
  await store.create("/b/1", bytes("1"));
  const a2 = await store.create("/a/2", bytes("2"));
  const last = await store.create("/b/2", bytes("2"));
  const keys = (await collect(store, prefixRange("/a/"), from, { revision: last })).map((event) =>
    event.type === "put" ? event.item.key : event.key,
  );
  t.same(keys, ["/a/1", "/a/2"]);
  t.same(await collect(store, prefixRange("/a/"), a2, { revision: last }), []);
}

async function testAbort(t: Test, store: Store): Promise<void> {
  const controller = new AbortController();
  let batches = 0;
  const done = (async () => {
    for await (const _ of store.watch(ALL, store.current(), controller.signal)) batches++;
  })();
  await store.create("/a", bytes("1"));
  await collect(store, ALL, (store.current() - 1) as Revision, { count: 1 });
  controller.abort();
  await done;
  t.ok(batches <= 1);
  const aborted = store.watch(ALL, (store.current() - 1) as Revision, controller.signal);
  for await (const _ of aborted) t.fail("an aborted watch delivers nothing");
}

async function testFuture(t: Test, store: Store): Promise<void> {
  const future = (store.current() + 1) as Revision;
  await failure(t, collect(store, ALL, future, { count: 1 }), "future-revision");
}

async function testCompaction(t: Test, store: Store): Promise<void> {
  const a1 = await store.create("/a", bytes("a1"));
  const b1 = await store.create("/b", bytes("b1"));
  const a2 = await store.update("/a", bytes("a2"), a1);
  const deleted = await store.delete("/b", b1);
  const a3 = await store.update("/a", bytes("a3"), a2);
  await store.compact(deleted);
  await failure(t, store.get("/a", { revision: a2 }), "compacted");
  await failure(t, store.list(ALL, { revision: b1 }), "compacted");
  await failure(t, collect(store, ALL, a2, { count: 1 }), "compacted");
  t.equal(text(await store.get("/a", { revision: deleted })), "a2", "the boundary is still readable");
  t.same(texts((await store.list(ALL, { revision: deleted })).items), ["/a=a2"]);
  const [event] = await collect(store, ALL, deleted, { count: 1 });
  t.match(event, { type: "put", item: { modified: a3 }, previous: { modified: a2 } });
  t.equal(text(event?.previous), "a2");
  t.same(texts((await store.list(ALL)).items), ["/a=a3"]);
  await store.compact(a1);
  await store.compact(store.current());
  t.equal(text(await store.get("/a")), "a3");
  t.equal((await store.get("/a"))?.created, a1);
  await failure(t, store.compact((store.current() + 1) as Revision), "future-revision");
}

async function testSlowWatch(t: Test, store: Store): Promise<void> {
  const from = store.current();
  const controller = new AbortController();
  const iterator = store.watch(ALL, from, controller.signal)[Symbol.asyncIterator]();
  const first = await store.create("/a", bytes("1"));
  t.equal((await iterator.next()).value.revision, first);
  const second = await store.update("/a", bytes("2"), first);
  const third = await store.update("/a", bytes("3"), second);
  await store.compact(third);
  await failure(t, iterator.next(), "compacted");
  controller.abort();
}

async function testConcurrency(t: Test, store: Store): Promise<void> {
  const creates = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.create("/a", bytes(`${i}`))));
  const won = creates.filter((result) => result.status === "fulfilled");
  t.equal(won.length, 1, "one creation wins");
  for (const result of creates) {
    if (result.status === "rejected") t.match(result.reason, { code: "exists", current: { modified: won[0]!.value } });
  }
  let counted = 0;
  const increment = async (): Promise<void> => {
    for (;;) {
      const item = (await store.get("/a"))!;
      try {
        await store.update("/a", bytes(String(Number(text(item)) + 1)), item.modified);
        counted++;
        return;
      } catch (error) {
        if ((error as StoreError).code !== "conflict") throw error;
      }
    }
  };
  const start = Number(text(await store.get("/a")));
  await Promise.all(Array.from({ length: 20 }, increment));
  t.equal(counted, 20);
  t.equal(text(await store.get("/a")), String(start + 20), "no increment is lost");
}

async function testRandom(t: Test, store: Store): Promise<void> {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  t.comment(`SEED=${seed}`);
  const random = seededRandom(seed);
  const pick = (count: number): number => Math.floor(random.fraction() * count);
  const start = store.current();
  const states: Map<string, string>[] = [new Map()];
  const heads = new Map<string, Revision>();
  for (let i = 0; i < 150; i++) {
    const key = `/${"abc"[pick(3)]}/${pick(5)}`;
    const head = heads.get(key);
    const state = new Map(states.at(-1));
    if (head === undefined) {
      heads.set(key, await store.create(key, bytes(`${i}`)));
      state.set(key, `${i}`);
    } else if (pick(3) === 0) {
      await store.delete(key, head);
      heads.delete(key);
      state.delete(key);
    } else {
      heads.set(key, await store.update(key, bytes(`${i}`), head));
      state.set(key, `${i}`);
    }
    states.push(state);
    if (i === 75) await store.compact((start + 20) as Revision);
  }
  const render = (state: Map<string, string>): string[] => [...state].map(([k, v]) => `${k}=${v}`).sort();
  const last = store.current();
  for (let i = 0; i < 20; i++) {
    const offset = 20 + pick(states.length - 21);
    const revision = (start + offset) as Revision;
    t.same(texts((await store.list(ALL, { revision })).items), render(states[offset]!), `list at +${offset}`);
    const replayed = new Map(states[offset]);
    for (const event of await collect(store, ALL, revision, { revision: last })) {
      if (event.type === "put") replayed.set(event.item.key, text(event.item)!);
      else replayed.delete(event.key);
    }
    t.same(render(replayed), render(states.at(-1)!), `watch from +${offset}`);
  }
}

async function testTtl(t: Test, store: Store, clock: FakeClock): Promise<void> {
  const made = await store.create("/short", bytes("x"), { ttlSeconds: 10 });
  await store.create("/long", bytes("y"), { ttlSeconds: 3600 });
  const last = await store.create("/forever", bytes("z"));
  const events = collect(store, ALL, last, { count: 1 });
  await clock.advance(9_000);
  t.equal((await store.get("/short"))?.modified, made);
  await clock.advance(2_000);
  t.match(await events, [{ type: "delete", key: "/short", revision: last + 1, previous: { modified: made } }]);
  t.same(texts((await store.list(ALL)).items), ["/forever=z", "/long=y"]);
}

async function testTtlOverwritten(t: Test, store: Store, clock: FakeClock): Promise<void> {
  const first = await store.create("/a", bytes("1"), { ttlSeconds: 10 });
  const kept = await store.create("/b", bytes("1"), { ttlSeconds: 10 });
  await clock.advance(5_000);
  const second = await store.update("/a", bytes("2"), first, { ttlSeconds: 20 });
  const third = await store.update("/b", bytes("2"), kept);
  await clock.advance(10_000);
  await store.create("/probe", bytes("1"));
  t.equal((await store.get("/a"))?.modified, second);
  const events = collect(store, prefixRange("/a"), store.current(), { count: 1 });
  await clock.advance(11_000);
  t.match(await events, [{ type: "delete", key: "/a" }]);
  t.equal((await store.get("/b"))?.modified, third, "a write without time to live stays");
}

async function testClosed(t: Test, factory: StoreFactory): Promise<void> {
  await t.test("every method of a closed store fails with closed", async (t) => {
    const clock = new FakeClock();
    const store = await factory(clock);
    const revision = await store.create("/a", bytes("1"), { ttlSeconds: 100 });
    const watching = collect(store, ALL, revision, { count: 1 });
    await new Promise((resolve) => setImmediate(resolve));
    const ended = failure(t, watching, "closed");
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await ended;
    const calls: readonly (() => Promise<unknown>)[] = [
      () => store.get("/a"),
      () => store.list(ALL),
      () => store.create("/b", bytes("1")),
      () => store.update("/a", bytes("1"), revision),
      () => store.delete("/a", revision),
      () => store.compact(revision),
      () => collect(store, ALL, revision, { count: 1 }),
    ];
    for (const call of calls) await failure(t, call(), "closed");
    t.equal(clock.pending, 0, "no timer is left");
  });
}
