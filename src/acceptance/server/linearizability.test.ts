/**
 * Histories of concurrent clients are linearizable: clients read, list, create, replace, patch and delete a few objects
 * at the same time; in a second test the server is killed meanwhile. Each object is checked on its own, which suffices.
 *
 *     SEED=123 node src/acceptance/server/linearizability.test.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openEtcdStore } from "../../storage/kvstore3/kvstore3.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Store } from "../../storage/store.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { type Answer, type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { type HistoryEntry, isLinearizable, type SequentialModel } from "../../testing/storage/linearizability.ts";

t.setTimeout(120_000);

const MAPS = "/api/v1/namespaces/default/configmaps";
const NAMES = ["a", "b", "c"];
const CLIENTS = 8;

type Input =
  | { readonly verb: "get" | "list" | "delete" }
  | { readonly verb: "create" | "replace" | "merge"; readonly value: string }
  /** Only when the object still has the value `from`: by resourceVersion, or by a JSON patch that tests it. */
  | { readonly verb: "update" | "test"; readonly from: string; readonly value: string };

interface Output {
  readonly status: number;
  /** Empty when there is no object. */
  readonly value: string;
}

const ABSENT = "";

/** The object's value. Each write has a value of its own, so that values identify resourceVersions. */
const configMap: SequentialModel<Input, Output> = {
  initial: ABSENT,
  step(state, input, output) {
    const { status, next } = respond(state, input);
    if (output === undefined) return next;
    const isRead = input.verb === "get" || input.verb === "list";
    return status === output.status && (!isRead || output.value === state) ? next : undefined;
  },
};

function respond(state: string, input: Input): { readonly status: number; readonly next: string } {
  const isAbsent = state === ABSENT;
  switch (input.verb) {
    case "list":
      return { status: 200, next: state };
    case "create":
      return isAbsent ? { status: 201, next: input.value } : { status: 409, next: state };
    case "get":
      return { status: isAbsent ? 404 : 200, next: state };
    case "delete":
      return { status: isAbsent ? 404 : 200, next: ABSENT };
    case "replace":
    case "merge":
      return isAbsent ? { status: 404, next: state } : { status: 200, next: input.value };
    case "update":
    case "test":
      if (isAbsent) return { status: 404, next: state };
      if (state !== input.from) return { status: input.verb === "update" ? 409 : 422, next: state };
      return { status: 200, next: input.value };
    default:
      return input satisfies never;
  }
}

type Send = (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;

const versions = new Map<string, string>();

async function request(send: Send, name: string, input: Input): Promise<Output> {
  const path = `${MAPS}/${name}`;
  const object = (value: string, resourceVersion?: string) => ({
    metadata: { name, resourceVersion },
    data: { value },
  });
  const call = (): Promise<Answer> => {
    switch (input.verb) {
      case "get":
        return send("GET", path);
      case "list":
        return send("GET", `${MAPS}?fieldSelector=metadata.name%3D${name}`);
      case "delete":
        return send("DELETE", path);
      case "create":
        return send("POST", MAPS, object(input.value));
      case "replace":
        return send("PUT", path, object(input.value));
      case "merge":
        return send("PATCH", path, { data: { value: input.value } }, "application/merge-patch+json");
      case "update":
        return send("PUT", path, object(input.value, versions.get(input.from)));
      case "test": {
        const operations = [
          { op: "test", path: "/data/value", value: input.from },
          { op: "replace", path: "/data/value", value: input.value },
        ];
        return send("PATCH", path, operations, "application/json-patch+json");
      }
      default:
        return input satisfies never;
    }
  };
  const { status, json } = await call();
  const found = json.items === undefined ? json : json.items[0];
  const value: string = found?.data?.value ?? ABSENT;
  if (status < 300 && value !== ABSENT) versions.set(value, found.metadata.resourceVersion);
  return { status, value };
}

class Histories {
  readonly byName = new Map(NAMES.map((name) => [name, [] as HistoryEntry<Input, Output>[]]));
  readonly #pick: (count: number) => number;
  /** The values that clients have seen, which conditional writes expect. */
  readonly #seen = new Map<string, string>();
  #writes = 0;

  constructor(seed: number) {
    const random = seededRandom(seed);
    this.#pick = (count) => Math.floor(random.fraction() * count);
  }

  /** Sends `count` requests of random clients. Rejects for a response that the server must not give. */
  async run(send: Send, count: number): Promise<void> {
    let sent = 0;
    const client = async (): Promise<void> => {
      while (sent++ < count) {
        const name = NAMES[this.#pick(NAMES.length)]!;
        const input = this.#choose(name);
        const called = performance.now();
        const output = await request(send, name, input).catch(() => undefined);
        const returned = performance.now();
        this.byName.get(name)!.push({ input, output, called, returned });
        if (output === undefined) return;
        if (output.value !== ABSENT) this.#seen.set(name, output.value);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
  }

  #choose(name: string): Input {
    const value = `v${++this.#writes}`;
    const from = this.#seen.get(name);
    const verbs = ["get", "list", "create", "replace", "merge", "update", "update", "test", "test", "delete"] as const;
    const verb = verbs[this.#pick(verbs.length)]!;
    if (verb === "get" || verb === "list" || verb === "delete") return { verb };
    if (verb === "update" || verb === "test") return from === undefined ? { verb: "get" } : { verb, from, value };
    return { verb, value };
  }

  check(t: Test): void {
    for (const [name, history] of this.byName) {
      const counts = Object.entries(Object.groupBy(history, ({ output }) => String(output?.status)));
      t.comment(`${name}: ${counts.map(([status, found]) => `${found?.length} of ${status}`).join(", ")}`);
      t.ok(isLinearizable(history, configMap), `the history of ${name} is linearizable`);
    }
  }
}

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

t.test("the history of concurrent clients is linearizable", async (t) => {
  t.comment(`SEED=${seed}`);
  await using server = await startTestServer();
  const histories = new Histories(seed);
  await histories.run(async (method, path, body, type = "application/json") => {
    // Other clients' requests are between this one and the request before.
    await new Promise((resolve) => setImmediate(resolve));
    return await server.send(`${method} ${path}`, { body, headers: { "content-type": type } });
  }, 2000);
  histories.check(t);
});

t.test("the history of clients of a server that is killed is linearizable", async (t) => {
  t.comment(`SEED=${seed}`);
  const home = mkdtempSync(join(tmpdir(), "svc-histories-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const histories = new Histories(seed + 1);
  for (let round = 0; round < 3; round++) {
    await using server: ServerProcess = await startServerProcess({ home, store: join(home, "store") });
    let requests = 0;
    await histories.run((method, path, body, contentType) => {
      if (++requests === 300 && round < 2) setImmediate(() => server.child.kill("SIGKILL"));
      return server.send(method, path, body, { contentType });
    }, 400);
  }
  histories.check(t);
});

const problem = findEtcdProblem();

t.test("the history of clients of three servers on one etcd is linearizable", { skip: problem ?? false }, async (t) => {
  t.comment(`SEED=${seed}`);
  await using etcd = await startEtcd();
  const options = { urls: etcd.urls, clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
  const servers: TestServer[] = [];
  t.teardown(() => Promise.all(servers.map((server) => server[Symbol.asyncDispose]())));
  for (let i = 0; i < 3; i++) {
    servers.push(await startTestServer({}, { clock: systemClock, store: await openEtcdStore(options) }));
  }
  const histories = new Histories(seed + 2);
  let sent = 0;
  await histories.run(async (method, path, body, type = "application/json") => {
    const server = servers[sent++ % servers.length]!;
    return await server.send(`${method} ${path}`, { body, headers: { "content-type": type } });
  }, 1000);
  histories.check(t);
});

t.test("parallel patches of one object make two attempts each at most, and all take effect", async (t) => {
  const clock = new FakeClock();
  const memory = createMemoryStore({ clock });
  let updates = 0;
  const store = new Proxy(memory, {
    get(target, name) {
      if (name === "update") updates++;
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  }) satisfies Store;
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
