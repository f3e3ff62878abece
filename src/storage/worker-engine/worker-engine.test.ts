import { setImmediate as turn } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { testStore } from "../../testing/storage/conformance.ts";
import { createMemoryStore } from "../memory.ts";
import { prefixRange, type Revision, type Store, type WatchBatch } from "../store.ts";
import { openRemoteStore } from "./remote-store.ts";
import { SharedStore } from "./shared-store.ts";
import { StoreService } from "./store-service.ts";

const ALL = prefixRange("/");
const bytes = (text: string): Uint8Array => Buffer.from(text);

/** A store, and the same one as another thread sees it. Disposing the latter closes both. */
function open(clock: FakeClock): {
  readonly shared: SharedStore;
  readonly remote: Store;
  readonly service: StoreService;
} {
  const shared = new SharedStore(createMemoryStore({ clock }));
  const { port1, port2 } = new MessageChannel();
  const service = new StoreService(shared, port1, clock);
  const remote = openRemoteStore({ port: port2, revision: shared.revision.memory, status: shared.status() });
  const close = remote[Symbol.asyncDispose].bind(remote);
  remote[Symbol.asyncDispose] = async () => {
    await close();
    service[Symbol.dispose]();
    await shared[Symbol.asyncDispose]();
  };
  return { shared, remote, service };
}

t.test("a remote store is a Store", (t) => testStore(t, async (clock) => open(clock).remote, { isEmbedded: false }));

t.test("values with a time to live expire by the clock of the owner", async (t) => {
  const clock = new FakeClock();
  await using store = open(clock).remote;
  await store.create("/short", bytes("x"), { ttlSeconds: 10 });
  await clock.advance(11_000);
  t.equal(await store.get("/short"), undefined);
});

t.test(
  "current() has a write of the owner before it is acknowledged, and what a watch of the owner shows",
  async (t) => {
    const clock = new FakeClock();
    const { shared, remote } = open(clock);
    await using _store = remote;
    let seen = 0;
    const stop = new AbortController();
    const watching = (async () => {
      for await (const { revision } of shared.watch(ALL, shared.current(), stop.signal)) {
        t.ok(remote.current() >= revision);
        seen = revision;
      }
    })();
    const revision = await shared.create("/a", bytes("1"), { ttlSeconds: 1 });
    t.equal(remote.current(), revision);
    await clock.advance(2000);
    await turn();
    t.equal(seen, revision + 1, "the deletion");
    await t.rejects(shared.update("/a", bytes("2"), revision), { code: "conflict" });
    stop.abort();
    await watching;
  },
);

t.test("a watch that is not read does not make the owner send more than a few batches", async (t) => {
  const clock = new FakeClock();
  const { shared, remote } = open(clock);
  await using _store = remote;
  const stop = new AbortController();
  const from = remote.current();
  const batches = remote.watch(ALL, from, stop.signal)[Symbol.asyncIterator]();
  let revision = await shared.create("/a", bytes("0"));
  const first = (await batches.next()).value as WatchBatch;
  t.equal(first.revision, revision);
  for (let count = 0; count < 50; count++) {
    revision = await shared.update("/a", bytes(String(count)), revision);
    await turn();
    await turn();
  }
  const sizes: number[] = [];
  for (let reached = first.revision as number; reached < revision; ) {
    const batch = (await batches.next()).value as WatchBatch;
    sizes.push(batch.events.length);
    reached = batch.revision;
  }
  t.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    50,
    "each change once",
  );
  t.ok(sizes.length < 15, `the others in one batch: ${sizes}`);
  stop.abort();
});

t.test("calls of one turn are one message", async (t) => {
  const shared = new SharedStore(createMemoryStore({ clock: systemClock }));
  const { port1, port2 } = new MessageChannel();
  const messages: number[] = [];
  port1.on("message", (requests: readonly unknown[]) => messages.push(requests.length));
  const service = new StoreService(shared, port1, systemClock);
  await using store = openRemoteStore({ port: port2, revision: shared.revision.memory, status: undefined });
  await Promise.all(Array.from({ length: 20 }, (_, index) => store.create(`/a/${index}`, bytes("x"))));
  t.same(messages, [20]);
  service[Symbol.dispose]();
  await shared[Symbol.asyncDispose]();
});

t.test("when the owner closes the port, calls and watches fail with closed", async (t) => {
  const { shared, remote, service } = open(new FakeClock());
  const batches = remote.watch(ALL, remote.current(), new AbortController().signal)[Symbol.asyncIterator]();
  const next = batches.next();
  const call = remote.get("/a");
  await turn();
  service[Symbol.dispose]();
  await t.rejects(next, { code: "closed" });
  await call.catch((error: unknown) => t.match(error, { code: "closed" }));
  await t.rejects(remote.get("/a"), { code: "closed" });
  await shared[Symbol.asyncDispose]();
});

t.test("when the user of a store ends, the owner ends its watches", async (t) => {
  const { shared, remote } = open(new FakeClock());
  let ended = false;
  const { watch } = shared;
  shared.watch = async function* (...args) {
    try {
      yield* watch.apply(shared, args);
    } finally {
      ended = true;
    }
  };
  const reading = remote
    .watch(ALL, remote.current() as Revision, new AbortController().signal)
    [Symbol.asyncIterator]()
    .next();
  reading.catch(() => {});
  await shared.create("/a", bytes("1"));
  await reading;
  await remote[Symbol.asyncDispose]();
  for (let count = 0; count < 20 && !ended; count++) await turn();
  t.ok(ended);
});
