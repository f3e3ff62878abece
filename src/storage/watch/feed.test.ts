import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createMemoryStore } from "../memory.ts";
import { prefixRange, type Range, type Revision, type Store, StoreError, type WatchEvent } from "../store.ts";
import { revisionOf, StoreFeed } from "./feed.ts";

const bytes = Buffer.from("x");

function setUp(t: Test) {
  const clock = new FakeClock();
  const inner = createMemoryStore({ clock });
  let watches = 0;
  let breaking = new AbortController();
  const store: Store = new Proxy(inner, {
    get(target, name) {
      if (name !== "watch") return (target[name as keyof Store] as () => unknown).bind(target);
      return async function* (range: Range, from: Revision, signal: AbortSignal) {
        watches++;
        const broken = breaking.signal;
        yield* target.watch(range, from, AbortSignal.any([signal, broken]));
        if (broken.aborted) throw new StoreError("unavailable", "The connection broke");
      };
    },
  });
  const feed = new StoreFeed({ store, range: prefixRange("/r/"), clock, log: silentLogger });
  t.teardown(async () => {
    await feed[Symbol.asyncDispose]();
    if (clock.pending > 0) throw new Error("A timer is left");
  });
  const breakWatch = (): void => {
    breaking.abort();
    breaking = new AbortController();
  };
  const follow = async (prefix: string) => {
    const seen: string[] = [];
    const failures: unknown[] = [];
    const change = (event: WatchEvent): void => void seen.push(event.type === "put" ? event.item.key : event.key);
    const subscriber = { onChange: change, onBroken: (error: unknown) => void failures.push(error) };
    return { since: await feed.subscribe(prefix, subscriber), seen, failures, subscriber };
  };
  return { clock, store, feed, follow, breakWatch, watches: () => watches };
}

t.test("StoreFeed delivers each change to the subscribers of its prefix, with one watch", async (t) => {
  const { store, feed, follow, watches } = setUp(t);
  await store.create("/r/pods/a/before", bytes);
  const pods = await follow("/r/pods/");
  const custom = await follow("/r/example.com/pods/");
  const again = await follow("/r/pods/");
  t.equal(pods.since, store.current());
  for (const key of ["/r/pods/a/1", "/r/example.com/pods/2", "/r/nodes/3", "/elsewhere/pods/4"]) {
    await store.create(key, bytes);
  }
  const last = store.current();
  while (feed.revision < last) await feed.progress.wait(new AbortController().signal);
  t.same([pods.seen, again.seen, custom.seen], [["/r/pods/a/1"], ["/r/pods/a/1"], ["/r/example.com/pods/2"]]);
  feed.unsubscribe("/r/pods/", pods.subscriber);
  await store.create("/r/pods/a/5", bytes);
  while (feed.revision < store.current()) await feed.progress.wait(new AbortController().signal);
  t.same([pods.seen.length, again.seen.length, watches()], [1, 2, 1]);
});

t.test("StoreFeed ends all subscriptions when its watch fails, and accepts new ones once it retries", async (t) => {
  const { clock, store, follow, breakWatch } = setUp(t);
  const first = await follow("/r/pods/");
  breakWatch();
  await new Promise((resolve) => setImmediate(resolve));
  t.match(first.failures, [{ code: "unavailable" }]);
  let joined = false;
  const joining = follow("/r/pods/").then((found) => {
    joined = true;
    return found;
  });
  await store.create("/r/pods/a/missed", bytes);
  t.equal(joined, false);
  await clock.advance(100);
  const second = await joining;
  t.equal(second.since, store.current());
  await store.create("/r/pods/a/live", bytes);
  await clock.advance(0);
  t.same([first.seen, second.seen], [[], ["/r/pods/a/live"]]);
});

t.test("StoreFeed ends the subscription of a subscriber that throws, and no other", async (t) => {
  const { clock, store, feed, follow } = setUp(t);
  const failures: unknown[] = [];
  const change = (): void => {
    throw new Error("cannot");
  };
  await feed.subscribe("/r/pods/", { onChange: change, onBroken: (error) => void failures.push(error) });
  const other = await follow("/r/pods/");
  for (const key of ["/r/pods/1", "/r/pods/2"]) await store.create(key, bytes);
  await clock.advance(0);
  t.match(failures, [{ message: "cannot" }]);
  t.same(other.seen, ["/r/pods/1", "/r/pods/2"]);
});

t.test("StoreFeed ends all subscriptions when it is closed, and rejects new ones", async (t) => {
  const { feed, follow } = setUp(t);
  const { failures } = await follow("/r/pods/");
  await feed[Symbol.asyncDispose]();
  t.match(failures, [{ code: "closed" }]);
  await t.rejects(follow("/r/pods/"), { code: "closed" });
});

t.test("between the changes of a long batch, the revision is that of the last change delivered", async (t) => {
  const { store, feed, follow } = setUp(t);
  const { subscriber } = await follow("/r/pods/");
  let delivered = 0;
  const slow = {
    ...subscriber,
    onChange: (event: WatchEvent): void => {
      const until = performance.now() + 12;
      while (performance.now() < until);
      delivered = revisionOf(event);
    },
  };
  await feed.subscribe("/r/pods/", slow);
  for (let i = 0; i < 6; i++) void store.create(`/r/pods/a/${i}`, bytes);
  const seen = new Set<number>();
  while (feed.revision < store.current()) {
    await new Promise(setImmediate);
    if (delivered > 0) t.equal(feed.revision, delivered, "no change is delivered beyond the revision");
    seen.add(feed.revision);
  }
  t.ok(seen.size > 2, "other work proceeded within the batch");
});
