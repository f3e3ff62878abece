/**
 * The embedded store survives power cuts. `svc apiserver` runs on a file system in memory that records each write and
 * each sync (FUSE). Then, for many points of the record, images are made of what a power cut there may leave on a disk:
 * what was synced, and a random part of the rest. Each must open with all writes acknowledged by then.
 *
 *     SVC_POWER_CUTS=5000 SEED=123 node src/acceptance/server/power-cuts.test.ts
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { type RandomSource, seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
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

/** A write of a client, with the lengths of the record when it was sent and when its response arrived. */
interface SentWrite {
  readonly name: string;
  /** "" for a deletion. */
  readonly value: string;
  readonly sentAt: number;
  acknowledgedAt: number;
  revision: number;
}

interface Trace {
  readonly operations: readonly DiskOperation[];
  readonly writes: readonly SentWrite[];
  /** Paths start with this in images. */
  readonly store: string;
}

/** Runs a server several times on a recorded disk, kills it under load each time, and returns what was recorded. */
async function record(t: Test, random: RandomSource): Promise<Trace> {
  const home = mkdtempSync(join(tmpdir(), "svc-power-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const mountPoint = join(home, "disk");
  mkdirSync(mountPoint);
  const disk = new RecordedDisk();
  const writes: SentWrite[] = [];
  for (let start = 0; start < STARTS; start++) {
    using connection = new FuseConnection(disk);
    const main = new URL("../../main.ts", import.meta.url).pathname;
    await using server = await startServerProcess({
      home,
      store: join(mountPoint, "store"),
      program: connection.command(mountPoint, [process.execPath, main]),
      inherited: [connection.fd],
      flags: ["--kvstore-compaction-interval=2s"],
    });
    await load(server, disk, writes, `s${start}`, random);
  }
  // The content of the reserve has no meaning, and would be most of each image.
  return { operations: withoutContent(disk.operations, RESERVE_FILE), writes, store: "store/" };
}

/** Creates, replaces and deletes objects, and kills the server while requests are under way. */
async function load(
  server: ServerProcess,
  disk: RecordedDisk,
  writes: SentWrite[],
  prefix: string,
  random: RandomSource,
) {
  let count = 0;
  const pick = (limit: number): number => Math.floor(random.fraction() * limit);
  const write = async (name: string, isPresent: boolean): Promise<boolean> => {
    const isDeleted = isPresent && pick(5) === 0;
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

function openImage(path: string): Promise<Store> {
  return openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });
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
async function examine(path: string, { writes }: Trace, count: number, random: RandomSource): Promise<Findings> {
  const sent = writes.filter(({ sentAt }) => sentAt <= count);
  const acknowledged = sent.filter(({ acknowledgedAt }) => acknowledgedAt <= count);
  const highest = Math.max(0, ...acknowledged.map(({ revision }) => revision));
  const problems: string[] = [];
  let isResumed = true;
  {
    await using store = await openImage(path);
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

if (canUseFuse()) {
  t.test(
    "after a power cut the store has all acknowledged writes and no partial ones",
    { timeout: TIMEOUT_MS },
    async (t) => {
      t.comment(`SEED=${seed}`);
      const random = seededRandom(seed);
      const trace = await record(t, random);
      const syncs = trace.operations.filter(({ type }) => type === "sync").length;
      t.ok(syncs > 100, "writes are synced");
      let resumed = 0;
      for (const names of ["journal", "independent"] as const) {
        for await (const { point, problems, isResumed } of cutPower(trace, names, Math.ceil(CUTS / 2), random)) {
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
      t.comment(JSON.stringify({ operations: trace.operations.length, syncs, acknowledged, cuts: CUTS, resumed }));
    },
  );
} else t.comment("Skipped: FUSE needs root and /dev/fuse");
