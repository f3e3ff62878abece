/**
 * Histories of concurrent clients are linearizable: clients read, list, create, replace, patch and delete a few objects
 * at the same time; in a second test the server is killed meanwhile. Each object is checked on its own, which suffices.
 * `make linearizability` checks more histories:
 *
 *     SVC_HISTORY_ROUNDS=10 SEED=123 node src/acceptance/server/linearizability.test.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openEtcdStore } from "../../storage/kvstore3/kvstore3.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { type Revision, type Store, StoreError } from "../../storage/store.ts";
import { openRemoteStore } from "../../storage/worker-engine/remote-store.ts";
import { SharedStore } from "../../storage/worker-engine/shared-store.ts";
import { StoreService } from "../../storage/worker-engine/store-service.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { type EtcdCluster, findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { checkRounds, Histories, MAPS, ROUNDS, type Send, seed } from "./histories.ts";

t.setTimeout(ROUNDS * 240_000);

/** Other clients' requests are between a request and the one before. */
const sendWithin =
  (server: TestServer): Send =>
  async (method, path, body, type = "application/json") => {
    await new Promise((resolve) => setImmediate(resolve));
    return await server.send(`${method} ${path}`, { body, headers: { "content-type": type } });
  };

t.test("the history of concurrent clients is linearizable", async (t) => {
  await using server = await startTestServer();
  await checkRounds(t, 0, (histories) => histories.run(sendWithin(server), 1500));
});

t.test("the history of clients of a server that is killed is linearizable", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "svc-histories-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  await checkRounds(t, 1, async (histories) => {
    for (let run = 0; run < 3; run++) {
      const flags = [`--workers=${1 + (run % 2)}`];
      await using server: ServerProcess = await startServerProcess({ home, store: join(home, "store"), flags });
      let requests = 0;
      await histories.run((method, path, body, contentType) => {
        if (++requests === 300 && run < 2) setImmediate(() => server.child.kill("SIGKILL"));
        return server.send(method, path, body, { contentType });
      }, 400);
    }
  });
});

/** Two servers in this process, of which one uses the store as another thread does. */
async function startTwoThreads(t: Test, wrap = (store: Store): Store => store): Promise<Send> {
  const shared = new SharedStore(createMemoryStore({ clock: systemClock }));
  const { port1, port2 } = new MessageChannel();
  const service = new StoreService(shared, port1, systemClock);
  const remote = openRemoteStore({ port: port2, revision: shared.revision.memory, status: undefined });
  const main = await startTestServer({}, { clock: systemClock, store: shared });
  const worker = await startTestServer({}, { clock: systemClock, store: wrap(remote) });
  t.teardown(async () => {
    await worker[Symbol.asyncDispose]();
    service[Symbol.dispose]();
    await main[Symbol.asyncDispose]();
  });
  let sent = 0;
  return async (method, path, body, type = "application/json") => {
    await new Promise((resolve) => setImmediate(resolve));
    const server = sent++ % 2 === 0 ? main : worker;
    return await server.send(`${method} ${path}`, { body, headers: { "content-type": type } });
  };
}

t.test("the history of clients of two threads over one store is linearizable", async (t) => {
  const send = await startTwoThreads(t);
  await checkRounds(t, 6, (histories) => histories.run(send, 1500));
});

t.test("the checker finds reads of a thread that does not see the revision of the others", async (t) => {
  let isBlind = false;
  const send = await startTwoThreads(t, (store) =>
    replaceMethods(store, { current: () => (isBlind ? (0 as Revision) : store.current()) }),
  );
  isBlind = true;
  const results: boolean[] = [];
  while (results.at(-1) !== false && results.length < 20) {
    const histories = new Histories(seed + 7 + 10 * results.length, [`unseen${results.length}`]);
    await histories.run(send, 300);
    results.push(histories.isLinearizable());
  }
  t.equal(results.at(-1), false, `found in history ${results.length}`);
});

const problem = findEtcdProblem();

/** Three servers in this process. */
async function startThreeServers(t: Test, etcd: EtcdCluster, wrap = (store: Store): Store => store): Promise<Send> {
  const options = { urls: etcd.urls, clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
  const servers: TestServer[] = [];
  t.teardown(() => Promise.all(servers.map((server) => server[Symbol.asyncDispose]())));
  for (let i = 0; i < 3; i++) {
    servers.push(await startTestServer({}, { clock: systemClock, store: wrap(await openEtcdStore(options)) }));
  }
  let sent = 0;
  return async (method, path, body, type = "application/json") => {
    const server = servers[sent++ % servers.length]!;
    return await server.send(`${method} ${path}`, { body, headers: { "content-type": type } });
  };
}

t.test("the history of clients of three servers on one etcd is linearizable", { skip: problem ?? false }, async (t) => {
  await using etcd = await startEtcd();
  const send = await startThreeServers(t, etcd);
  await checkRounds(t, 2, (histories) => histories.run(send, 400));
});

/** They take long. */
const skipLong = problem ?? (process.env.SVC_HISTORY_FAULTS === undefined ? "make linearizability runs it" : false);

/** The store with other implementations of some methods. */
function replaceMethods(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(methods, name)) return Reflect.get(methods, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  }) satisfies Store;
}

/** Updates without regard to the expected revision. */
function overwrite(store: Store): Store["update"] {
  return async (key, value, expected, options) => {
    // A slow store, so that another update is between the read and this one.
    await sleep(2);
    for (let revision = expected; ; ) {
      try {
        return await store.update(key, value, revision, options);
      } catch (error) {
        if (!(error instanceof StoreError) || error.current === undefined) throw error;
        revision = error.current.modified;
      }
    }
  };
}

/** Defects of a store that the checker must find. The key of an object of a history has the path of config maps. */
const DEFECTS: Readonly<Record<string, (store: Store, isHit: () => boolean) => Partial<Store>>> = {
  "an update is acknowledged and dropped": (store, isHit) => ({
    update: async (key, value, expected, options) =>
      key.includes("/configmaps/") && isHit() ? store.current() : await store.update(key, value, expected, options),
  }),
  "an update is acknowledged before and applied after a later one": (store, isHit) => ({
    update: async (key, value, expected, options) => {
      if (!key.includes("/configmaps/") || !isHit()) return await store.update(key, value, expected, options);
      void sleep(5).then(() => overwrite(store)(key, value, expected, options).catch(() => {}));
      return store.current();
    },
  }),
  "an update overwrites one that was acknowledged since its read": (store) => ({ update: overwrite(store) }),
};

t.test("the checker finds defects of a store", async (t) => {
  for (const [what, defect] of Object.entries(DEFECTS)) {
    const random = seededRandom(seed);
    const memory = createMemoryStore({ clock: systemClock });
    const store = replaceMethods(
      memory,
      defect(memory, () => random.fraction() < 0.3),
    );
    await using server = await startTestServer({}, { store });
    const results: boolean[] = [];
    while (results.at(-1) !== false && results.length < 20) {
      const histories = new Histories(seed + 4 + 10 * results.length, [`defect${results.length}`]);
      await histories.run(sendWithin(server), 300);
      results.push(histories.isLinearizable());
    }
    t.equal(results.at(-1), false, `${what}: found in history ${results.length}`);
  }
});

t.test("the checker finds reads that do not wait for a majority", { skip: skipLong }, async (t) => {
  await using etcd = await startEtcd();
  const send = await startThreeServers(t, etcd, (store) =>
    replaceMethods(store, { readRevision: async () => store.current() }),
  );
  const results: boolean[] = [];
  while (results.at(-1) !== false && results.length < 20) {
    const histories = new Histories(seed + 5 + 10 * results.length, [`stale${results.length}`]);
    await histories.run(send, 300);
    results.push(histories.isLinearizable());
  }
  t.equal(results.at(-1), false, `found in history ${results.length}`);
});

t.test("parallel patches of one object make two attempts each at most, and all take effect", async (t) => {
  const clock = new FakeClock();
  const memory = createMemoryStore({ clock });
  let updates = 0;
  const store = replaceMethods(memory, {
    update: (...args) => {
      updates++;
      return memory.update(...args);
    },
  });
  await using server = await startTestServer({}, { clock, store });
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "shared" }, data: { n: "0" } } });
  updates = 0;
  const types = ["application/merge-patch+json", "application/strategic-merge-patch+json"];
  const patches = Array.from({ length: 200 }, (_, n) => {
    const headers = { "content-type": types[n % 2]! };
    return server.send(`PATCH ${MAPS}/shared`, { body: { data: { [`k${n}`]: "x" } }, headers });
  });
  const statuses = (await Promise.all(patches)).map(({ status }) => status);
  t.same(new Set(statuses), new Set([200]));
  const { json } = await server.send(`GET ${MAPS}/shared`);
  t.equal(Object.keys(json.data).length, 201);
  t.ok(updates <= 400, `${updates} updates`);
});
