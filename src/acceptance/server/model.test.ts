/**
 * Sends random requests to a whole server, with watching clients:
 *
 * 1. One writer creates, replaces, patches and deletes config maps, one by one and by selector, and keeps a model of
 *    the acknowledged objects for each revision.
 * 2. Clients list (whole or in pages) and watch, through selectors, as reflectors do: from the list's revision on; an
 *    ended watch continues from the last event; after a 410 the client lists again.
 * 3. Meanwhile the store's watch fails, history is compacted, streams are cut and, with files, the server is restarted.
 * 4. No event may be duplicated, out of order or invalid; in the end each client has the objects of the model.
 *
 *     SEED=123 node src/acceptance/server/model.test.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { openLevelStore } from "../../storage/level/level.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import { type Range, type Revision, type Store, StoreError } from "../../storage/store.ts";
import { startTestServer, type TestResponse, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const CLIENTS = 12;
const NAMESPACES = ["default", "kube-system"];
const COLORS = ["red", "blue"];

interface ConfigMap {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
}

/** By `namespace/name`: the resourceVersion or content that identifies a state. */
type State = Map<string, string>;

const keyOf = ({ metadata }: ConfigMap): string => `${metadata.namespace}/${metadata.name}`;
const textOf = ({ metadata, data }: ConfigMap): string =>
  JSON.stringify([metadata.resourceVersion, metadata.labels?.color, data?.n]);

interface World {
  server: TestServer;
  /** The clock of the server and its store; replaced by a restart. */
  readonly clock: FakeClock;
  readonly log: string[];
  breakWatches(): void;
  /** Undefined with a store in memory, which a restart would lose. */
  readonly restart: (() => Promise<void>) | undefined;
  compact(before: number): Promise<void>;
  current(): number;
}

interface Selection {
  readonly namespace: string | undefined;
  readonly color: string | undefined;
}

function selects({ namespace, color }: Selection, [key, text]: readonly [string, string]): boolean {
  if (namespace !== undefined && !key.startsWith(`${namespace}/`)) return false;
  return color === undefined || JSON.parse(text)[1] === color;
}

function pathOf({ namespace, color }: Selection): string {
  const path = namespace === undefined ? "/api/v1/configmaps" : `/api/v1/namespaces/${namespace}/configmaps`;
  return `${path}?${color === undefined ? "" : `labelSelector=color%3D${color}&`}`;
}

/** A client that maintains a copy, as an informer does. */
class Client {
  readonly selection: Selection;
  readonly #world: World;
  readonly #pages: number;
  state: State = new Map();
  lists = 0;
  events = 0;
  #seen = 0;
  #stream = new AbortController();
  #stopped = false;
  readonly running: Promise<void>;

  constructor(world: World, selection: Selection, pages: number) {
    this.#world = world;
    this.selection = selection;
    this.#pages = pages;
    this.running = this.#run();
  }

  cut(): void {
    this.#stream.abort();
  }

  stop(): void {
    this.#stopped = true;
    this.#stream.abort();
  }

  async #run(): Promise<void> {
    let listed = false;
    while (!this.#stopped) {
      if (!listed) listed = await this.#list();
      if (listed) listed = await this.#watch();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Whether the list is complete. */
  async #list(): Promise<boolean> {
    const state: State = new Map();
    let revision = "";
    let next = "";
    do {
      const { server } = this.#world;
      const page = await server.send(`GET ${pathOf(this.selection)}limit=${this.#pages}&continue=${next}`).catch(ended);
      if (page?.status !== 200) return false;
      revision ||= page.json.metadata.resourceVersion;
      if (revision !== page.json.metadata.resourceVersion) throw new Error("Pages are of different revisions");
      for (const item of page.json.items as ConfigMap[]) {
        if (state.has(keyOf(item))) throw new Error(`${keyOf(item)} is on two pages`);
        state.set(keyOf(item), textOf(item));
      }
      next = page.json.metadata.continue ?? "";
      // The writer may write between two pages.
      await new Promise((resolve) => setImmediate(resolve));
    } while (next !== "");
    this.state = state;
    this.#seen = Number(revision);
    this.lists++;
    return true;
  }

  /** Whether the client may continue from its last event. */
  async #watch(): Promise<boolean> {
    this.#stream = new AbortController();
    const { server } = this.#world;
    const { signal } = this.#stream;
    const target = `${pathOf(this.selection)}watch=true&allowWatchBookmarks=true&resourceVersion=${this.#seen}`;
    const response = await server.open(`GET ${target}`, { signal }).catch(ended);
    if (response === undefined || response.status !== 200) return response?.status !== 410;
    let rest = "";
    try {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        if (signal.aborted) return true;
        const lines = (rest + Buffer.from(chunk).toString()).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (!this.#handleEvent(JSON.parse(line))) return false;
      }
    } catch (error) {
      if (!signal.aborted && !(error instanceof StoreError)) throw error;
    }
    return true;
  }

  #handleEvent({ type, object }: { readonly type: string; readonly object: ConfigMap }): boolean {
    if (type === "ERROR") {
      if ((object as unknown as { code: number }).code !== 410) throw new Error(`ERROR ${JSON.stringify(object)}`);
      return false;
    }
    const revision = Number(object.metadata.resourceVersion);
    const again = type === "DELETED" || type === "BOOKMARK";
    if (revision < this.#seen || (revision === this.#seen && !again)) {
      throw new Error(`${type} of revision ${revision} after ${this.#seen}`);
    }
    this.#seen = revision;
    if (type === "BOOKMARK") return true;
    this.events++;
    const key = keyOf(object);
    if (this.state.has(key) !== (type !== "ADDED")) throw new Error(`${type} ${key} makes no sense at ${revision}`);
    if (type === "DELETED") this.state.delete(key);
    else this.state.set(key, textOf(object));
    return true;
  }
}

/** Whether the request failed because the server is stopping. */
function ended(): undefined {
  return undefined;
}

/** The writer; its acknowledged writes are the expected state. */
class Writer {
  readonly #world: World;
  readonly #pick: (count: number) => number;
  readonly state: State = new Map();
  /** By revision. */
  readonly past = new Map<number, State>();
  #revision = 0;
  #number = 0;

  constructor(world: World, pick: (count: number) => number) {
    this.#world = world;
    this.#pick = pick;
  }

  async begin(): Promise<void> {
    const { json } = await this.#send("GET /api/v1/configmaps");
    for (const item of json.items as ConfigMap[]) this.state.set(keyOf(item), textOf(item));
  }

  async step(): Promise<void> {
    const namespace = NAMESPACES[this.#pick(2)]!;
    const name = `m${this.#pick(12)}`;
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const known = this.state.get(`${namespace}/${name}`);
    const what = this.#pick(20);
    if (what === 0) await this.#deleteMany(namespace, path);
    else if (known === undefined) await this.#write(`POST ${path}`, this.#body(namespace, name), [201]);
    else if (what < 5) await this.#remove(`${path}/${name}`, `${namespace}/${name}`);
    else if (what < 12) await this.#patch(`${path}/${name}`);
    else await this.#replace(`${path}/${name}`, namespace, name, JSON.parse(known)[0]);
  }

  async last(namespace: string): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const color of COLORS) {
      const body = { metadata: { name: `last-${color}`, namespace, labels: { color } } };
      await this.#write(`POST ${path}`, body, [201]);
    }
  }

  #body(namespace: string, name: string, resourceVersion?: string) {
    const color = COLORS[this.#pick(3)];
    const labels = color === undefined ? {} : { color };
    return { metadata: { name, namespace, labels, resourceVersion }, data: { n: String(this.#number++) } };
  }

  async #patch(path: string): Promise<void> {
    const color = [...COLORS, null][this.#pick(3)];
    const patch = { metadata: { labels: { color } }, data: { n: String(this.#number++) } };
    await this.#write(`PATCH ${path}`, patch, [200], { "content-type": "application/merge-patch+json" });
  }

  async #replace(path: string, namespace: string, name: string, seen: string): Promise<void> {
    const stale = this.#pick(4) === 0;
    const body = this.#body(namespace, name, stale ? "1" : seen);
    await this.#write(`PUT ${path}`, body, stale ? [409] : [200]);
  }

  async #remove(path: string, key: string): Promise<void> {
    const { status } = await this.#send(`DELETE ${path}`);
    if (status !== 200) throw new Error(`DELETE ${path} answered ${status}`);
    this.state.delete(key);
    this.#remember(this.#world.current());
  }

  async #deleteMany(namespace: string, path: string): Promise<void> {
    const color = COLORS[this.#pick(2)]!;
    const { status } = await this.#send(`DELETE ${path}?labelSelector=color%3D${color}`);
    if (status !== 200) throw new Error(`DELETE ${path} answered ${status}`);
    for (const entry of [...this.state]) if (selects({ namespace, color }, entry)) this.state.delete(entry[0]);
    this.#remember(this.#world.current());
  }

  async #write(line: string, body: unknown, wanted: readonly number[], headers = {}): Promise<void> {
    const { status, json } = await this.#send(line, body, headers);
    if (!wanted.includes(status)) throw new Error(`${line} answered ${status}: ${JSON.stringify(json)}`);
    if (status >= 300) return;
    this.state.set(keyOf(json), textOf(json));
    const revision = Number(json.metadata.resourceVersion);
    if (revision < this.#revision) throw new Error(`Revision ${revision} came after ${this.#revision}`);
    this.#remember(revision);
  }

  #remember(revision: number): void {
    this.#revision = revision;
    this.past.set(revision, new Map(this.state));
  }

  async #send(line: string, body?: unknown, headers = {}): Promise<TestResponse> {
    this.#world.log.push(line);
    return await this.#world.server.send(line, { body, headers });
  }
}

const sorted = (state: Iterable<readonly [string, string]>): unknown => [...state].sort();

/** Compares the server's objects with the model, at the current and at an earlier revision. */
async function checkReads(world: World, writer: Writer, selection: Selection, pick: (n: number) => number) {
  const shown = async (query: string): Promise<unknown> => {
    const { status, json } = await world.server.send(`GET ${pathOf(selection)}${query}`);
    if (status === 410) return undefined;
    return sorted((json.items as ConfigMap[]).map((item) => [keyOf(item), textOf(item)] as const));
  };
  const wanted = (state: State): unknown => sorted([...state].filter((entry) => selects(selection, entry)));
  const same = (what: string, found: unknown, expected: unknown): void => {
    if (JSON.stringify(found) === JSON.stringify(expected)) return;
    const texts = [found, expected].map((value) => JSON.stringify(value));
    const last = world.log.slice(-3).join(", ");
    throw new Error(`${what} is wrong after ${last}: ${texts[0]} instead of ${texts[1]}`);
  };
  same("The list", await shown(""), wanted(writer.state));
  const revisions = [...writer.past.keys()];
  const revision = revisions[revisions.length - 1 - pick(Math.min(20, revisions.length))];
  if (revision === undefined) return;
  const past = await shown(`resourceVersion=${revision}&resourceVersionMatch=Exact`);
  if (past !== undefined) same(`The list as of ${revision}`, past, wanted(writer.past.get(revision)!));
}

async function disturb(world: World, clients: readonly Client[], pick: (count: number) => number): Promise<void> {
  if (pick(10) === 0) clients[pick(clients.length)]!.cut();
  if (pick(40) === 0) world.breakWatches();
  if (pick(40) === 0) await world.compact(world.current() - pick(30));
  if (pick(50) === 0) await world.restart?.();
  if (pick(6) === 0) await world.clock.advance(pick(2) === 0 ? 100 : 70_000);
  if (pick(3) === 0) await new Promise((resolve) => setImmediate(resolve));
}

async function play(t: Test, world: World, seed: number, steps: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = (count: number): number => Math.floor(random.fraction() * count);
  const selection = (): Selection => ({
    namespace: [...NAMESPACES, undefined][pick(3)],
    color: [...COLORS, undefined][pick(3)],
  });
  const writer = new Writer(world, pick);
  await writer.begin();
  const clients = Array.from({ length: CLIENTS }, () => new Client(world, selection(), [0, 3][pick(2)]!));
  const failure = Promise.race(clients.map(({ running }) => running)).then(() => {
    throw new Error("A client has stopped");
  });
  failure.catch(() => {});
  for (let step = 0; step < steps; step++) {
    await settled(world, Promise.race([writer.step(), failure]));
    if (pick(12) === 0) await settled(world, checkReads(world, writer, selection(), pick));
    await settled(world, disturb(world, clients, pick));
  }
  for (const namespace of NAMESPACES) await settled(world, writer.last(namespace));
  const same = ({ selection, state }: Client): boolean => {
    const wanted = [...writer.state].filter((entry) => selects(selection, entry));
    return JSON.stringify(sorted(state)) === JSON.stringify(sorted(wanted));
  };
  for (let round = 0; round < 500 && !clients.every(same); round++) {
    await Promise.race([world.clock.advance(100), failure]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const client of clients) {
    const wanted = [...writer.state].filter((entry) => selects(client.selection, entry));
    t.same(sorted(client.state), sorted(wanted), `${client.lists} lists, ${client.events} events`);
    client.stop();
  }
  await Promise.all(clients.map(({ running }) => running));
  const events = clients.reduce((sum, client) => sum + client.events, 0);
  t.ok(events > steps, `${events} events`);
}

/** Advances the clock while a promise is pending: a cache that lost its watch lists again after a delay. */
async function settled(world: World, promise: Promise<void>): Promise<void> {
  let over = false;
  const done = promise.finally(() => {
    over = true;
  });
  done.catch(() => {});
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!over) await world.clock.advance(20);
  }
  await done;
}

async function makeWorld(open: (clock: FakeClock) => Promise<Store>, keeps: boolean): Promise<World> {
  let breaking = new AbortController();
  let inner: Store;
  let clock = new FakeClock();
  const start = async (): Promise<TestServer> => {
    clock = new FakeClock(clock.now());
    inner = await open(clock);
    const store: Store = new Proxy(inner, {
      get(target, name) {
        const member = target[name as keyof Store];
        if (name !== "watch") return typeof member === "function" ? (member as () => unknown).bind(target) : member;
        return async function* (range: Range, from: Revision, signal: AbortSignal) {
          const broken = breaking.signal;
          yield* target.watch(range, from, AbortSignal.any([signal, broken]));
          if (broken.aborted) throw new StoreError("unavailable", "The connection is gone");
        };
      },
    });
    // The fake clock advances while the disk is busy.
    const limits = { ...defaultConfig.limits, requestTimeoutMs: 1e9 };
    return await startTestServer({ limits }, { clock, store });
  };
  const world: World = {
    server: await start(),
    get clock() {
      return clock;
    },
    log: [],
    current: () => inner.current(),
    compact: (before) => inner.compact(Math.max(1, before) as Revision),
    breakWatches() {
      breaking.abort();
      breaking = new AbortController();
    },
    restart: !keeps
      ? undefined
      : async () => {
          await world.server[Symbol.asyncDispose]();
          world.server = await start();
        },
  };
  return world;
}

const base = Number(process.env.SEED ?? Date.now() % 1_000_000);

t.test("REST and watch are consistent with a store in memory", async (t) => {
  t.comment(`SEED=${base}`);
  const world = await makeWorld(async (clock) => createMemoryStore({ clock }), false);
  await play(t, world, base, 500);
  await world.server[Symbol.asyncDispose]();
});

t.test("REST and watch are consistent with files and restarts", { timeout: 60_000 }, async (t) => {
  t.comment(`SEED=${base}`);
  const directory = mkdtempSync(join(tmpdir(), "svc-model-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const options = { path: join(directory, "store"), log: silentLogger, compactionIntervalMs: 0 };
  const world = await makeWorld((clock) => openLevelStore({ ...options, clock }), true);
  // Each write waits for the disk.
  await play(t, world, base, 150);
  await world.server[Symbol.asyncDispose]();
});
