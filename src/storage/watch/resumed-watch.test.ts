/** Watches of clients that were connected to an earlier process on the same store. */
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import { prefixRange, type Revision } from "../store.ts";
import { WatchCache } from "./cache.ts";
import { StoreFeed } from "./feed.ts";
import { canResume, resumeWatch } from "./resumed-watch.ts";
import type { CacheEvent } from "./watch-event.ts";

const PREFIX = "/registry";

/** A store with three changes of an object, and then a server with an empty cache. */
async function setUp(t: Test, others = 0) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: PREFIX });
  const key = (name: string): string => objects.key("default", name);
  const first = await objects.create(key("a"), makeWidget("a"));
  const change = (count: number) =>
    objects.guaranteedUpdate(key("a"), (current) => ({
      ...current,
      metadata: { ...current.metadata, labels: { n: `${count}` } },
    }));
  for (let n = 0; n < others; n++) await store.create(`/registry/others/${n}`, new Uint8Array(1));
  await change(1);
  await change(2);
  const feed = new StoreFeed({ store, range: prefixRange(`${PREFIX}/`), clock, log: silentLogger });
  const cache = new WatchCache({ feed, objects, clock, log: silentLogger });
  const controller = new AbortController();
  t.teardown(async () => {
    controller.abort();
    await cache[Symbol.asyncDispose]();
    await feed[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  await cache.ready();
  const from = Number(first.metadata?.resourceVersion) as Revision;
  const options = { store, objects, clock, prefix: objects.prefix(), signal: controller.signal, from };
  const read = async (events: AsyncIterator<CacheEvent<Widget>>): Promise<string> => {
    const { value } = await events.next();
    const { type, item } = value as Exclude<CacheEvent<Widget>, { readonly type: "BOOKMARK" }>;
    return `${type} ${item.object.metadata?.labels?.n}`;
  };
  return { store, feed, cache, objects, key, change, options, from, read };
}

t.test(
  "a watch continues with the changes before the history of the cache, and then with those of the cache",
  async (t) => {
    const { cache, feed, options, from, read, change, objects, key } = await setUp(t);
    t.ok(canResume(cache, from, feed.opened));
    let initialized = 0;
    const events = resumeWatch(cache, { ...options, onInitialized: () => void initialized++ });
    t.equal(await read(events), "MODIFIED 1");
    await change(3);
    t.equal(await read(events), "MODIFIED 2");
    t.equal(await read(events), "MODIFIED 3");
    await change(4);
    t.equal(await read(events), "MODIFIED 4");
    await objects.delete(key("a"));
    t.equal(await read(events), "DELETED 4");
    t.equal(initialized, 1);
  },
);

t.test("a watch from a compacted revision gets 410", async (t) => {
  const { cache, store, options } = await setUp(t);
  await store.compact(store.current());
  const message = `too old resource version: ${options.from} (${cache.historyStart})`;
  await t.rejects(resumeWatch(cache, options).next(), { name: "StatusError", message });
});

t.test("clients of a new store, and those that are far behind, list again", async (t) => {
  const { cache, from, feed } = await setUp(t, 1000);
  t.notOk(canResume(cache, from, feed.opened), "more than a thousand changes");
  const near = (cache.historyStart - 10) as Revision;
  t.ok(canResume(cache, near, feed.opened));
  t.notOk(canResume(cache, near, 1 as Revision));
  t.notOk(canResume(cache, cache.historyStart, feed.opened), "the cache has the changes");
});
