import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { createMemoryStore } from "../memory.ts";
import { type KeyValue, prefixRange, type WatchEvent } from "../store.ts";
import { ConvertedFeed } from "./converted-feed.ts";
import { StoreFeed } from "./feed.ts";

const PREFIX = "/r/routes/";
const bytes = Buffer.from("x");

/** A feed whose conversions wait until the test resolves them; `converting` has the keys of each. */
function setUp(t: Test) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const base = new StoreFeed({ store, range: prefixRange("/r/"), clock, log: silentLogger });
  const conversions: { readonly keys: string; resolve(): void; fail(): void }[] = [];
  const feed = new ConvertedFeed(base, async (items) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly KeyValue[]>();
    const keys = items.map(({ key }) => key.slice(PREFIX.length)).join(" ");
    const converted = items.map((item) => ({ ...item, value: Buffer.from("converted") }));
    conversions.push({ keys, resolve: () => resolve(converted), fail: () => reject(new Error("no answer")) });
    return await promise;
  });
  t.teardown(async () => await base[Symbol.asyncDispose]());
  const seen: string[] = [];
  const failures: string[] = [];
  const subscriber = {
    onChange: (event: WatchEvent): void => {
      seen.push(event.type === "put" ? `${event.item.key.slice(PREFIX.length)} ${event.item.value}` : "deleted");
    },
    onBroken: (error: unknown) => void failures.push((error as Error).message),
  };
  const list = async () => {
    const scan = async () => {
      const items: KeyValue[] = [];
      let revision = 0;
      for await (const part of feed.store.scan(prefixRange(PREFIX))) {
        items.push(...part.items);
        ({ revision } = part);
      }
      return { items, revision };
    };
    const scanning = scan();
    await settled();
    conversions.shift()?.resolve();
    return await scanning;
  };
  return { store, base, feed, subscriber, seen, failures, conversions, list };
}

async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

t.test("ConvertedFeed delivers converted changes in order, and converts queued ones together", async (t) => {
  const { store, base, feed, subscriber, seen, conversions, list } = setUp(t);
  await store.create(`${PREFIX}old`, bytes);
  await feed.subscribe(PREFIX, subscriber);
  await store.create(`${PREFIX}early`, bytes);
  await settled();
  t.same(conversions, [], "changes that the list contains are not converted again");
  const { items, revision } = await list();
  t.same(
    items.map(({ key, value }) => `${key.slice(PREFIX.length)} ${value}`),
    ["early converted", "old converted"],
  );
  const first = await store.create(`${PREFIX}a`, bytes);
  await settled();
  await store.create(`${PREFIX}b`, bytes);
  await store.delete(`${PREFIX}a`, first);
  await store.create("/r/others/x", bytes);
  await settled();
  t.same(seen, []);
  t.same([feed.revision, base.revision], [revision, store.current()], "it has come no further than it has handed on");
  conversions.shift()?.resolve();
  await settled();
  t.same(seen, ["a converted"]);
  t.equal(feed.revision, first);
  t.same(
    conversions.map(({ keys }) => keys),
    ["b"],
  );
  conversions.shift()?.resolve();
  await settled();
  t.same(seen, ["a converted", "b converted", "deleted"]);
  t.equal(feed.revision, store.current());
  feed.unsubscribe(PREFIX, subscriber);
  await store.create(`${PREFIX}c`, bytes);
  await settled();
  t.same(conversions, []);
});

t.test("ConvertedFeed breaks the subscription when a conversion fails", async (t) => {
  const { store, feed, subscriber, seen, failures, conversions, list } = setUp(t);
  await feed.subscribe(PREFIX, subscriber);
  await list();
  await store.create(`${PREFIX}a`, bytes);
  await settled();
  conversions.shift()?.fail();
  await settled();
  t.same([seen, failures], [[], ["no answer"]]);
  await store.create(`${PREFIX}b`, bytes);
  await settled();
  t.same(conversions, [], "the subscription has ended");
  t.equal(feed.revision, store.current());
});

t.test("ConvertedFeed breaks the subscription when its queue is full", async (t) => {
  const { store, feed, subscriber, failures, conversions, list } = setUp(t);
  await feed.subscribe(PREFIX, subscriber);
  await list();
  const large = Buffer.alloc(5 * 2 ** 20);
  for (const name of ["a", "b", "c", "d", "e"]) {
    await store.create(`${PREFIX}${name}`, large);
  }
  // Each large change has a turn of the event loop of its own.
  await until("the subscription is broken", () => failures.length > 0);
  t.same(failures, ["Cannot follow the store: the conversion webhook is slower than the writes"]);
  conversions.shift()?.resolve();
  await settled();
  t.equal(failures.length, 1);
});
