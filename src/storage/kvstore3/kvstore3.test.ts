import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import { testStore } from "../../testing/storage/conformance.ts";
import { type EtcdCluster, findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { prefixRange, type Revision, type Store, type WatchEvent } from "../store.ts";
import { type EtcdStoreOptions, openEtcdStore } from "./kvstore3.ts";
import { parseServerUrl } from "./servers.ts";

const problem = findEtcdProblem();
const skip = problem === undefined ? false : `not run: ${problem}`;
const bytes = (text: string): Uint8Array => Buffer.from(text);

function open(urls: readonly string[], options: Partial<EtcdStoreOptions> = {}): Promise<Store> {
  return openEtcdStore({ urls, clock: systemClock, log: silentLogger, compactionIntervalMs: 0, ...options });
}

async function cluster(t: Test, members = 1): Promise<EtcdCluster> {
  const etcd = await startEtcd(members);
  t.teardown(() => etcd[Symbol.asyncDispose]());
  return etcd;
}

/** The changes of a watch until it has `count`. */
async function changes(store: Store, from: Revision, count: number): Promise<readonly WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const batch of store.watch(prefixRange("/"), from, AbortSignal.timeout(30_000))) {
    events.push(...batch.events);
    if (events.length >= count) break;
  }
  return events;
}

/** Of the clusters that run the suite of all engines. */
const MEMBERS = Number(process.env.SVC_ETCD_MEMBERS ?? 1);

t.test("openEtcdStore() is a Store", { skip }, async (t) => {
  const etcd = await cluster(t, MEMBERS);
  let stores = 0;
  // Each test has its own keys in one server, but compactions are the server's: each gets a server of its own.
  const factory = async (clock: Clock): Promise<Store> => {
    const own = stores++ === 0 ? etcd : await cluster(t, MEMBERS);
    return await open(own.urls, { clock });
  };
  await testStore(t, factory, { isEmbedded: false });
});

t.test("values with a time to live expire with an event, and share leases", { skip }, async (t) => {
  const { urls } = await cluster(t);
  await using store = await open(urls, { leaseReuseSeconds: 60 });
  const from = await store.create("/events/a", bytes("1"), { ttlSeconds: 1 });
  await store.create("/events/b", bytes("2"), { ttlSeconds: 1 });
  const kept = await store.create("/events/c", bytes("3"), { ttlSeconds: 1 });
  await store.update("/events/c", bytes("4"), kept);
  const events = await changes(store, (from + 3) as Revision, 2);
  t.same(events.map((event) => event.type === "delete" && event.key).sort(), ["/events/a", "/events/b"]);
  t.equal(Buffer.from((await store.get("/events/c"))!.value).toString(), "4", "a write without time to live stays");
});

t.test("readRevision() sees the writes of other servers, and watches reach it", { skip }, async (t) => {
  const { urls } = await cluster(t);
  await using one = await open(urls);
  await using two = await open(urls);
  const from = await one.readRevision!();
  const watched = changes(one, from, 1);
  const written = await two.create("/a", bytes("x"));
  t.equal(await one.readRevision!(), written);
  const reads = await Promise.all(Array.from({ length: 100 }, () => one.readRevision!()));
  t.ok(reads.every((revision) => revision >= written));
  t.match(await watched, [{ type: "put", item: { key: "/a", modified: written } }]);
});

t.test("one of several stores compacts per interval, with Kubernetes' key", { skip }, async (t) => {
  const { urls } = await cluster(t);
  const stores = await Promise.all([1, 2].map(() => open(urls, { compactionIntervalMs: 300 })));
  t.teardown(() => Promise.all(stores.map((store) => store[Symbol.asyncDispose]())));
  const [store] = stores as [Store];
  const old = await store.create("/a", bytes("1"));
  await store.update("/a", bytes("2"), old);
  for (let i = 0; i < 100; i++) {
    await sleep(100);
    const result = await store.get("/a", { revision: old }).catch((error: { code: string }) => error.code);
    if (result === "compacted") break;
  }
  await t.rejects(store.get("/a", { revision: old }), { code: "compacted" });
  t.match(Buffer.from((await store.get("compact_rev_key"))!.value).toString(), /^\d+$/);
});

t.test("a store with three servers survives the death of each", { skip }, async (t) => {
  const etcd = await cluster(t, 3);
  await using store = await open(etcd.urls);
  const from = store.current();
  let stopped = false;
  const written: string[] = [];
  const write = async (): Promise<void> => {
    for (let i = 0; !stopped; i++) {
      await store.create(`/${i}`, bytes(String(i)));
      written.push(`/${i}`);
    }
  };
  const writing = write();
  for (const server of etcd.servers) {
    await sleep(300);
    await server.stop("SIGKILL");
    await sleep(1500);
    server.start();
    await server.ready();
    await sleep(500);
  }
  stopped = true;
  await writing;
  const { items } = await store.list(prefixRange("/"));
  t.same(
    items.map(({ key }) => key).sort(),
    [...written].sort(),
    "each acknowledged write is present, no write failed",
  );
  t.equal((await changes(store, from, written.length)).length, written.length);
});

/** Passes bytes between clients and a server, or drops those of one direction. */
class Relay implements AsyncDisposable {
  dropped: "requests" | "responses" | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(target: string) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((client) => {
      const server = connect(Number(port), hostname);
      for (const [from, to, kind] of [
        [client, server, "requests"],
        [server, client, "responses"],
      ] as const) {
        this.#sockets.add(from);
        from.on("data", (data) => this.dropped !== kind && to.write(data));
        from.on("error", () => {});
        from.on("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
      }
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes the connections; later ones pass all bytes. */
  reset(): void {
    this.dropped = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.reset();
  }
}

t.test("the result of a write whose response was lost is that of its first request", { skip }, async (t) => {
  const { urls } = await cluster(t);
  await using other = await open(urls);
  await using relay = new Relay(urls[0]!);
  await using store = await open([await relay.listen()]);
  const until = async (key: string, value: string): Promise<Revision> => {
    for (;;) {
      const found = await other.get(key);
      if (found !== undefined && String(found.value) === value) return found.modified;
      await sleep(5);
    }
  };
  await t.test("when another write has overwritten it", async (t) => {
    const first = await store.create("/a", bytes("0"));
    relay.dropped = "responses";
    const writing = store.update("/a", bytes("1"), first);
    const second = await until("/a", "1");
    await other.update("/a", bytes("2"), second);
    relay.reset();
    t.equal(await writing, second);
  });
  await t.test("a conflict, when it was not processed", async (t) => {
    const first = await store.create("/b", bytes("0"));
    relay.dropped = "requests";
    const writing = store.update("/b", bytes("1"), first);
    await sleep(50);
    const second = await other.update("/b", bytes("2"), first);
    relay.reset();
    await t.rejects(writing, { code: "conflict", current: { modified: second } });
  });
  await t.test("unknown, when the key was deleted meanwhile", async (t) => {
    const first = await store.create("/c", bytes("0"));
    relay.dropped = "responses";
    const writing = store.update("/c", bytes("1"), first);
    await other.delete("/c", await until("/c", "1"));
    relay.reset();
    await t.rejects(writing, { code: "unavailable", message: /may have taken effect/ });
  });
});

t.test("a store without servers fails with what is wrong", async (t) => {
  await t.rejects(
    openEtcdStore({
      urls: ["http://127.0.0.1:1"],
      clock: { ...systemClock, monotonic: () => performance.now() * 100 },
      log: silentLogger,
      compactionIntervalMs: 0,
    }),
    { code: "unavailable", message: /127\.0\.0\.1:1: No connection established.*ECONNREFUSED/ },
  );
});

t.test("parseServerUrl() accepts http and https with host and port", async (t) => {
  t.same(parseServerUrl("http://[::1]:2379"), { address: "[::1]:2379", isSecure: false });
  t.same(parseServerUrl("https://etcd.example.com:2379/"), { address: "etcd.example.com:2379", isSecure: true });
  for (const url of ["etcd:2379", "ftp://a:1", "http://", "http://user@a:1", "http://a:1/path", "http://a:1?x"]) {
    t.throws(() => parseServerUrl(url), RangeError, url);
  }
});
