/**
 * The embedded store survives power cuts. `svc apiserver` runs on a file system in memory that records each write and
 * each sync (FUSE). Then, for many points of the record, images are made of what a power cut there may leave on a disk:
 * what was synced, and a random part of the rest. Each must open with all writes acknowledged by then. With
 * SVC_POWER_CUTS, a quarter as many cuts also of a server whose events expire meanwhile, and of one that reaches the
 * quota of its store.
 *
 *     SVC_POWER_CUTS=5000 SEED=123 node src/acceptance/server/power-cuts.test.ts
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { type RandomSource, seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { openLevelStore } from "../../storage/level/level.ts";
import { RESERVE_FILE } from "../../storage/level/space.ts";
import { prefixRange, type Revision, type Store } from "../../storage/store.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { CrashModel, type NameModel } from "../../testing/storage/power-cut/crash-image.ts";
import { type DiskOperation, withoutContent } from "../../testing/storage/power-cut/disk-operations.ts";
import { canUseFuse, FuseConnection } from "../../testing/storage/power-cut/fuse-connection.ts";
import { RecordedDisk } from "../../testing/storage/power-cut/recorded-disk.ts";

const CUTS = Number(process.env.SVC_POWER_CUTS ?? 40);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const TIMEOUT_MS = 300_000 + CUTS * 1000;
t.setTimeout(TIMEOUT_MS);

const MAPS = "/api/v1/namespaces/default/configmaps";
const KEYS = "/registry/configmaps/default/";
const STARTS = 3;
const WRITERS = 8;
const NAMES_PER_WRITER = 4;
/** Together more than LevelDB keeps in one log, when there are many cuts. */
const WRITES_PER_START = CUTS < 500 ? 100 : 1200;
const FILLING_LENGTH = 6000;

const EVENTS = "/api/v1/namespaces/default/events";
const EVENT_KEYS = "/registry/events/";
/** While the quota is exceeded only deletions are accepted. */
const FULL_PAUSE_MS = 20;
/** More than any time to live, with what a start may add. */
const FORGOTTEN_MS = 600_000;

interface Scenario {
  readonly name: string;
  readonly flags: readonly string[];
  /** Events are created as well, and expire. */
  readonly eventTtlMs?: number;
}

const scenarios: readonly Scenario[] = [
  { name: "under load", flags: [] },
  { name: "while events expire", flags: ["--event-ttl=1s"], eventTtlMs: 1000 },
  { name: "over the quota of the store", flags: [`--kvstore-quota-bytes=${CUTS < 500 ? 1_000_000 : 3_000_000}`] },
];

/** A write of a client, with the lengths of the record when it was sent and when its response arrived. */
interface SentWrite {
  readonly name: string;
  /** "" for a deletion. */
  readonly value: string;
  readonly sentAt: number;
  acknowledgedAt: number;
  revision: number;
}

/** An event that must be present from the first to the second length of the record. */
interface SentEvent {
  readonly name: string;
  readonly from: number;
  until: number;
}

interface Trace {
  readonly operations: readonly DiskOperation[];
  readonly writes: readonly SentWrite[];
  readonly events: readonly SentEvent[];
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** Writes that the full store refused. */
  readonly refused: number;
  /** Paths start with this in images. */
  readonly store: string;
}

/** Runs a server several times on a recorded disk, kills it under load each time, and returns what was recorded. */
async function record(t: Test, scenario: Scenario, random: RandomSource): Promise<Trace> {
  const home = mkdtempSync(join(tmpdir(), "svc-power-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const mountPoint = join(home, "disk");
  mkdirSync(mountPoint);
  const disk = new RecordedDisk();
  const writes: SentWrite[] = [];
  const events: SentEvent[] = [];
  let refused = 0;
  for (let start = 0; start < STARTS; start++) {
    using connection = new FuseConnection(disk);
    const main = new URL("../../main.ts", import.meta.url).pathname;
    await using server = await startServerProcess({
      home,
      store: join(mountPoint, "store"),
      program: connection.command(mountPoint, [process.execPath, main]),
      inherited: [connection.fd],
      flags: ["--kvstore-compaction-interval=2s", ...scenario.flags],
    });
    const creating = scenario.eventTtlMs && createEvents(server, disk, events, `s${start}`, scenario.eventTtlMs);
    refused += await load(server, disk, writes, `s${start}`, random);
    await creating;
  }
  // The content of the reserve has no meaning, and would be most of each image.
  const operations = withoutContent(disk.operations, RESERVE_FILE);
  return { operations, writes, events, refused, endedAt: systemClock.now(), store: "store/" };
}

/** Creates events one after another until the server is killed. */
async function createEvents(
  server: ServerProcess,
  disk: RecordedDisk,
  events: SentEvent[],
  prefix: string,
  ttlMs: number,
): Promise<void> {
  let isRunning = true;
  const untilKnown = async (event: SentEvent): Promise<void> => {
    // A tenth of the time for the clock of the lease, which is in whole seconds and started before the response.
    await Promise.race([sleep(ttlMs * 0.9), server.ended]);
    event.until = disk.operations.length;
  };
  const pending: Promise<void>[] = [];
  for (let count = 0; isRunning; count++) {
    const name = `${prefix}-${count}`;
    const body = { metadata: { name }, involvedObject: { namespace: "default" } };
    try {
      const { status } = await server.send("POST", EVENTS, body);
      if (status !== 201) throw new Error(`POST of the event ${name} gets ${status}`);
      const event: SentEvent = { name, from: disk.operations.length, until: 0 };
      events.push(event);
      pending.push(untilKnown(event));
    } catch {
      isRunning = false;
    }
  }
  await Promise.all(pending);
}

/**
 * Creates, replaces and deletes objects, and kills the server while requests are under way. Resolves with the number of
 * writes that a full store refused.
 */
async function load(
  server: ServerProcess,
  disk: RecordedDisk,
  writes: SentWrite[],
  prefix: string,
  random: RandomSource,
): Promise<number> {
  let [count, refused] = [0, 0];
  const pick = (limit: number): number => Math.floor(random.fraction() * limit);
  /** Whether the object is present afterwards. */
  const write = async (name: string, isPresent: boolean, isFull = false): Promise<boolean> => {
    const isDeleted = isPresent && (isFull || pick(5) === 0);
    const value = isDeleted ? "" : `${prefix}-${count}`;
    const filling = Buffer.from(random.bytes(FILLING_LENGTH / 2)).toString("hex");
    const sent: SentWrite = {
      name,
      value,
      sentAt: disk.operations.length,
      acknowledgedAt: Number.POSITIVE_INFINITY,
      revision: 0,
    };
    writes.push(sent);
    const body = { metadata: { name }, data: { value: `<${value}:${filling}>` } };
    const method = isDeleted ? "DELETE" : isPresent ? "PUT" : "POST";
    const path = isPresent ? `${MAPS}/${name}` : MAPS;
    const { status, json } = await server.send(method, path, isDeleted ? undefined : body);
    if (status >= 500 && !isDeleted && /space exceeded/.test(String(json?.message))) {
      refused++;
      if (isPresent) return await write(name, true, true);
      await sleep(FULL_PAUSE_MS);
      return false;
    }
    if (status >= 300) throw new Error(`${method} of ${name} gets ${status}`);
    sent.acknowledgedAt = disk.operations.length;
    if (!isDeleted) sent.revision = Number(json.metadata.resourceVersion);
    if (++count >= WRITES_PER_START) server.child.kill("SIGKILL");
    return !isDeleted;
  };
  const writer = async (_: unknown, index: number): Promise<void> => {
    const present = new Set<string>();
    while (true) {
      const name = `${prefix}-${index * NAMES_PER_WRITER + pick(NAMES_PER_WRITER)}`;
      if (await write(name, present.has(name))) present.add(name);
      else present.delete(name);
    }
  };
  await Promise.allSettled(Array.from({ length: WRITERS }, writer));
  await server.ended;
  return refused;
}

interface Cut extends Findings {
  /** The number of operations before it. */
  readonly point: number;
}

/** Cuts the power at `count` random points, in order, and examines what is left each time. */
async function* cutPower(trace: Trace, names: NameModel, count: number, random: RandomSource): AsyncGenerator<Cut> {
  const directory = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-power-"));
  const model = new CrashModel(names);
  const points = Array.from({ length: count }, () => Math.floor(random.fraction() * (trace.operations.length + 1)));
  let applied = 0;
  try {
    for (const point of points.sort((a, b) => a - b)) {
      while (applied < point) model.apply(trace.operations[applied++]!);
      const image = join(directory, `${point}`);
      for (const [path, content] of model.image(random)) {
        const file = join(image, path);
        mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true, mode: 0o700 });
        if (!path.endsWith("/")) writeFileSync(file, content, { mode: 0o600 });
      }
      const findings = examine(join(image, trace.store), trace, point, random);
      yield { point, ...(await findings.catch((error) => ({ problems: [String(error)], isResumed: false }))) };
      rmSync(image, { recursive: true, force: true });
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function openImage(path: string, clock = new FakeClock()): Promise<Store> {
  return openLevelStore({ path, clock, log: silentLogger, compactionIntervalMs: 0 });
}

/** The value that a write of this test stored; "partial" for a part of it. */
function storedValue(stored: Uint8Array): string {
  const [, value, filling = ""] = /<([\w-]+):(\w*)>/.exec(Buffer.from(stored).toString("latin1")) ?? [];
  return value !== undefined && filling.length === FILLING_LENGTH ? value : "partial";
}

interface Findings {
  readonly problems: readonly string[];
  /** Whether the history after the last change that a client has seen was there. */
  readonly isResumed: boolean;
}

/** Opens what a cut after `count` operations left, and compares it with the writes until then. */
async function examine(path: string, trace: Trace, count: number, random: RandomSource): Promise<Findings> {
  const { writes, events } = trace;
  const sent = writes.filter(({ sentAt }) => sentAt <= count);
  const acknowledged = sent.filter(({ acknowledgedAt }) => acknowledgedAt <= count);
  const highest = Math.max(0, ...acknowledged.map(({ revision }) => revision));
  const problems: string[] = [];
  let isResumed = true;
  {
    const clock = new FakeClock(trace.endedAt);
    await using store = await openImage(path, clock);
    const kept = new Set((await store.list(prefixRange(EVENT_KEYS))).items.map(({ key }) => key.split("/").at(-1)));
    for (const { name, from, until } of events)
      if (from <= count && count <= until && !kept.has(name)) problems.push(`the event ${name} is lost`);
    const { items } = await store.list(prefixRange(KEYS));
    const found = new Map(items.map(({ key, value }) => [key.slice(KEYS.length), storedValue(value)]));
    const byName = Map.groupBy(sent, ({ name }) => name);
    for (const [name, ofName] of byName) {
      const last = ofName.findLastIndex(({ acknowledgedAt }) => acknowledgedAt <= count);
      const allowed = [last < 0 ? "" : ofName[last]!.value, ...ofName.slice(last + 1).map(({ value }) => value)];
      const value = found.get(name) ?? "";
      if (!allowed.includes(value)) problems.push(`${name} is "${value}", not "${allowed.join('" or "')}"`);
    }
    for (const name of found.keys()) if (!byName.has(name)) problems.push(`${name} was not written yet`);
    if (store.current() < highest) problems.push(`revision ${store.current()} is below ${highest}`);
    const seen = acknowledged.filter(({ revision }) => revision > 0);
    const from = seen[Math.floor(random.fraction() * seen.length)]?.revision;
    if (from !== undefined) {
      const changes = await changesAfter(store, from as Revision);
      isResumed = changes !== undefined;
      const expected = acknowledged.filter(({ revision }) => revision > from);
      for (const { name, value, revision } of changes === undefined ? [] : expected) {
        const times = changes?.filter((change) => change === `${revision} ${name} ${value}`).length;
        if (times !== 1) problems.push(`a watch from ${from} receives ${revision} of ${name} ${times} times`);
      }
    }
    const next = await store.create(`${KEYS}after`, Buffer.from("after"));
    if (next <= highest) problems.push(`revision ${next} is used again`);
    if (kept.size > 0) {
      await clock.advance(FORGOTTEN_MS);
      const countLeft = async () => (await store.list(prefixRange(EVENT_KEYS))).items.length;
      // Their deletion is a write to the disk.
      for (let wait = 0; wait < 100 && (await countLeft()) > 0; wait++) await sleep(20);
      const left = await countLeft();
      if (left > 0) problems.push(`${left} events do not expire`);
    }
  }
  await using again = await openImage(path);
  if ((await again.get(`${KEYS}after`)) === undefined) problems.push("a write after the cut is lost");
  return { problems, isResumed };
}

/** The history of the store after a revision; undefined when it has been compacted. */
async function changesAfter(store: Store, from: Revision): Promise<string[] | undefined> {
  const changes: string[] = [];
  const abort = new AbortController();
  if (store.current() === from) return changes;
  try {
    for await (const { events, revision } of store.watch(prefixRange(KEYS), from, abort.signal)) {
      for (const event of events) {
        if (event.type === "put") {
          const { key, modified, value } = event.item;
          changes.push(`${modified} ${key.slice(KEYS.length)} ${storedValue(value)}`);
        }
      }
      if (revision >= store.current()) abort.abort();
    }
  } catch (error) {
    if ((error as { readonly code?: string }).code === "compacted") return undefined;
    throw error;
  }
  return changes;
}

for (const scenario of canUseFuse() ? scenarios.slice(0, process.env.SVC_POWER_CUTS ? undefined : 1) : []) {
  const cuts = scenario === scenarios[0] ? CUTS : Math.ceil(CUTS / 4);
  t.test(
    `after a power cut ${scenario.name} the store has all acknowledged writes and no partial ones`,
    { timeout: TIMEOUT_MS },
    async (t) => {
      t.comment(`SEED=${seed}`);
      const random = seededRandom(seed);
      const trace = await record(t, scenario, random);
      if (scenario.eventTtlMs !== undefined) t.ok(trace.events.length > 10, "events are created");
      if (scenario.flags.some((flag) => flag.includes("quota"))) t.ok(trace.refused > 0, "the quota is exceeded");
      const syncs = trace.operations.filter(({ type }) => type === "sync").length;
      t.ok(syncs > 100, "writes are synced");
      let resumed = 0;
      for (const names of ["journal", "independent"] as const) {
        for await (const { point, problems, isResumed } of cutPower(trace, names, Math.ceil(cuts / 2), random)) {
          t.same(problems, [], `a cut after ${point} operations, names ${names}`);
          if (isResumed) resumed++;
        }
      }
      // The test finds what it looks for: without syncs, acknowledged writes are lost.
      const unsynced = { ...trace, operations: trace.operations.filter(({ type }) => type !== "sync") };
      let found = 0;
      for await (const { problems } of cutPower(unsynced, "journal", 8, random)) if (problems.length > 0) found++;
      t.ok(found > 0, "a disk that ignores syncs loses writes");
      const acknowledged = trace.writes.filter(({ acknowledgedAt }) => Number.isFinite(acknowledgedAt)).length;
      const { refused } = trace;
      const [operations, events] = [trace.operations.length, trace.events.length];
      t.comment(JSON.stringify({ operations, syncs, acknowledged, events, refused, cuts, resumed }));
    },
  );
}
if (!canUseFuse()) t.comment("Skipped: FUSE needs root and /dev/fuse");
