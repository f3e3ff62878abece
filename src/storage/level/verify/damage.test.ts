/**
 * Damages every file of a small store at every kind of position: the start is refused, or the store is complete.
 * `make damage` adds random edits:
 *
 *     SVC_DAMAGE_ROUNDS=20 SEED=123 node src/storage/level/verify/damage.test.ts
 */
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { seededRandom } from "../../../std/crypto/random.ts";
import { type Logger, silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { until } from "../../../testing/std/until.ts";
import { prefixRange, type Store, StoreError } from "../../store.ts";
import { openLevelStore } from "../level.ts";
import { readRevisionFile } from "./revision-file.ts";

const directory = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-damage-"));
/** Of random edits: each damages each file once in each way. */
const ROUNDS = Number(process.env.SVC_DAMAGE_ROUNDS ?? 0);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
const random = seededRandom(seed);
const pick = (count: number): number => Math.floor(random.fraction() * count);
t.setTimeout(300_000 + ROUNDS * 60_000);
t.comment(`SEED=${seed}`);
t.teardown(() => rmSync(directory, { recursive: true }));
let count = 0;
const newPath = (): string => join(directory, `${count++}`);

function open(path: string, log: Logger = silentLogger, clock = new FakeClock()): Promise<Store> {
  return openLevelStore({ path, clock, log, compactionIntervalMs: 0 });
}

/** Values that compress and values that do not. */
function makeValue(number: number): Buffer {
  const value = Buffer.alloc(500 + number, `value ${number} `);
  if (number % 2 === 0) for (let i = 0; i < value.length; i++) value[i] = (i * i * 31 + number * 7) >>> 3;
  return value;
}

async function writeSome(store: Store, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await store.create(`/registry/things/${i}`, makeValue(i));
}

/** A store with a table of each start, and a log with writes. */
async function makeStore(): Promise<string> {
  const path = newPath();
  for (let start = 0; start < 3; start++) {
    await using store = await open(path);
    if (start === 2) await store.compact(store.current());
    await writeSome(store, start * 100, start * 100 + 60);
  }
  // Its copies would take most of the time.
  rmSync(join(path, "RESERVE"));
  return path;
}

/** A copy of a store in use, some time after its file REVISION was written, and the revision in that. */
async function makeCrashedStore(): Promise<{ readonly path: string; readonly reached: number }> {
  const [path, copy, clock] = [await makeStore(), newPath(), new FakeClock()];
  await using store = await open(path, silentLogger, clock);
  await writeSome(store, 300, 330);
  const reached = store.current();
  await clock.advance(2000);
  while ((await readRevisionFile(path))?.revision !== reached) await new Promise((resolve) => setTimeout(resolve, 5));
  await writeSome(store, 330, 360);
  cpSync(path, copy, { recursive: true });
  rmSync(join(copy, "RESERVE"));
  return { path: copy, reached };
}

interface State {
  readonly revision: number;
  readonly items: ReadonlyMap<string, string>;
}

/** The objects as lists and single reads give them. */
async function stateOf(store: Store): Promise<State> {
  const { items, revision } = await store.list(prefixRange("/registry/"));
  const found = new Map<string, string>();
  for (const item of items) {
    const read = await store.get(item.key);
    const same = read !== undefined && Buffer.compare(item.value, read.value) === 0;
    found.set(`${item.key}@${item.modified}`, same ? Buffer.from(item.value).toString("latin1") : "unequal");
  }
  return { revision, items: found };
}

/** Whether the state is the whole one, or the whole one at an earlier revision. */
function isPrefix(state: State, whole: State): boolean {
  const expected = [...whole.items].filter(([key]) => Number(key.split("@")[1]) <= state.revision);
  return expected.length === state.items.size && expected.every(([key, value]) => state.items.get(key) === value);
}

type Edit = (bytes: Buffer) => Buffer | undefined;

/** The positions: header, first record, around block borders, spread over the middle, tail. */
function positions(size: number): number[] {
  const spread = Array.from({ length: 8 }, (_, i) => Math.floor((size * (i + 0.5)) / 8));
  const edges = [0, 3, 4, 5, 6, 7, 8, 20, 32_766, 32_768, 32_775, size - 60, size - 48, size - 20, size - 9, size - 1];
  return [...new Set([...edges, ...spread])].filter((position) => position >= 0 && position < size);
}

function editsOf(size: number): [string, Edit][] {
  const edits: [string, Edit][] = [["deleted", () => undefined]];
  edits.push(["zeroed", (bytes) => Buffer.alloc(bytes.length)]);
  edits.push(["replaced by text", () => Buffer.from("this is another file\n")]);
  for (const at of positions(size)) {
    const change = (edit: (copy: Buffer) => void): Edit => {
      return (bytes) => {
        const copy = Buffer.from(bytes);
        edit(copy);
        return copy;
      };
    };
    edits.push([`truncated at ${at}`, (bytes) => bytes.subarray(0, at)]);
    edits.push([`a bit flipped at ${at}`, change((copy) => copy.writeUInt8(copy.readUInt8(at) ^ (1 << (at % 8)), at))]);
    edits.push([`64 bytes zeroed at ${at}`, change((copy) => copy.fill(0, at, Math.min(at + 64, size)))]);
    edits.push([`overwritten from ${at}`, change((copy) => copy.fill(0x55, at))]);
  }
  return edits;
}

/** Edits of random places and lengths. */
function randomEditsOf(size: number): [string, Edit][] {
  const edits: [string, Edit][] = [];
  const add = (what: string, edit: (bytes: Buffer) => Buffer): void => void edits.push([what, edit]);
  if (size === 0) return edits;
  for (let round = 0; round < ROUNDS; round++) {
    const [at, from, bit] = [pick(size), pick(size), pick(8)];
    const length = 1 + pick(Math.min(5000, size));
    const noise = Buffer.from(random.bytes(length));
    const edited = (change: (copy: Buffer) => void) => (bytes: Buffer) => {
      const copy = Buffer.from(bytes);
      change(copy);
      return copy;
    };
    const flip = edited((copy) => copy.writeUInt8(copy.readUInt8(at) ^ (1 << bit), at));
    add(`truncated at ${at}`, (bytes) => bytes.subarray(0, at));
    add(`bit ${bit} flipped at ${at}`, flip);
    add(
      `${length} bytes zeroed at ${at}`,
      edited((copy) => copy.fill(0, at, Math.min(at + length, size))),
    );
    add(
      `${length} random bytes at ${at}`,
      edited((copy) => noise.copy(copy, at)),
    );
    add(
      `${length} bytes of ${from} at ${at}`,
      edited((copy) => copy.copyWithin(at, from, from + length)),
    );
    add(`${length} bytes removed at ${at}`, (bytes) =>
      Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]),
    );
    add(`${length} bytes inserted at ${at}`, (bytes) =>
      Buffer.concat([bytes.subarray(0, at), noise, bytes.subarray(at)]),
    );
  }
  return edits;
}

const IRRELEVANT = /^(?:LOCK|LOG|LOG\.old|REVISION)$/;
const SENTENCE =
  /^Cannot open the embedded store in ".*": it is damaged: .*\. .*\b[Ll]ost\b.*\. No file was changed\. Keep a copy/;

/** Names and contents of all files, LevelDB's own log included. */
function contentsOf(path: string): Record<string, string> {
  const names = readdirSync(path).filter((name) => statSync(join(path, name)).isFile());
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(path, name), "latin1")]));
}

interface Attempt {
  readonly state?: State;
  readonly error?: unknown;
  readonly warnings: readonly string[];
}

async function tryToOpen(path: string): Promise<Attempt> {
  const warnings: string[] = [];
  try {
    await using store = await open(path, { ...silentLogger, warn: (text) => void warnings.push(text) });
    return { state: await stateOf(store), warnings };
  } catch (error) {
    return { error, warnings };
  }
}

/** Applies each edit to a copy of the store and opens it. */
async function damageEach(
  path: string,
  names: readonly string[],
  check: (title: string, copy: string, name: string, attempt: Attempt, before: Record<string, string>) => void,
): Promise<void> {
  for (const name of names) {
    const bytes = readFileSync(join(path, name));
    for (const [what, edit] of [...editsOf(bytes.length), ...randomEditsOf(bytes.length)]) {
      const copy = newPath();
      cpSync(path, copy, { recursive: true });
      const edited = edit(bytes);
      if (edited === undefined) rmSync(join(copy, name));
      else writeFileSync(join(copy, name), edited);
      const before = contentsOf(copy);
      check(`${name} ${what}`, copy, name, await tryToOpen(copy), before);
      rmSync(copy, { recursive: true });
    }
  }
}

function checkRefusal(t: Test, title: string, copy: string, error: unknown, before: Record<string, string>): void {
  if (!(error instanceof StoreError) || error.code !== "corrupt") t.fail(`${title}: ${String(error)}`);
  else t.match(error.message, SENTENCE, title);
  t.same(contentsOf(copy), before, `${title}: nothing is changed`);
}

async function wholeState(path: string): Promise<State> {
  const copy = newPath();
  cpSync(path, copy, { recursive: true });
  await using store = await open(copy);
  return await stateOf(store);
}

t.test("a store with any damaged file is complete, or refused with nothing changed", async (t) => {
  const path = await makeStore();
  const whole = await wholeState(path);
  const names = readdirSync(path);
  t.ok(names.some((name) => name.endsWith(".ldb")) && names.some((name) => name.endsWith(".log")));
  const counts = { refused: 0, complete: 0 };
  await damageEach(path, names, (title, copy, name, { state, error }, before) => {
    if (error !== undefined) {
      counts.refused++;
      checkRefusal(t, title, copy, error, before);
      if (IRRELEVANT.test(name)) t.fail(`${title}: is refused without a reason`);
    } else {
      counts.complete++;
      t.same(state, whole, `${title}: complete`);
    }
  });
  t.comment(JSON.stringify(counts));
  t.ok(counts.refused > counts.complete);
});

t.test("tables that are older than the file REVISION are refused with nothing changed", async (t) => {
  const [path, copy] = [newPath(), newPath()];
  for (let start = 0; start < 6; start++) {
    // Each second start writes nothing: its log is empty, and all revisions are in tables.
    const store = await open(path);
    if (start % 2 === 0) await writeSome(store, start * 100, start * 100 + 5);
    await store[Symbol.asyncDispose]();
    if (start === 3) cpSync(path, copy, { recursive: true });
  }
  cpSync(join(path, "REVISION"), join(copy, "REVISION"));
  const before = contentsOf(copy);
  const { error } = await tryToOpen(copy);
  checkRefusal(t, "older tables", copy, error, before);
  t.match(error, { message: /it ends at revision 11 of 16\. Lost are the writes of revisions 12 to 16/ });
});

t.test("a damaged log of a crashed store is refused, unless a power cut may be the cause", async (t) => {
  const { path, reached } = await makeCrashedStore();
  const whole = await wholeState(path);
  const counts = { refused: 0, complete: 0, shortened: 0 };
  const logs = readdirSync(path).filter((name) => name.endsWith(".log"));
  await damageEach(path, logs, (title, copy, name, { state, error, warnings }, before) => {
    if (state === undefined) {
      counts.refused++;
      checkRefusal(t, title, copy, error, before);
    } else if (state.revision === whole.revision) counts.complete++;
    else {
      counts.shortened++;
      t.ok(isPrefix(state, whole) && state.revision >= reached, `${title}: at most the end is lost`);
      // Nothing shows that a log lost whole records.
      if (warnings.length > 0) t.ok(existsSync(join(copy, "lost", name)), `${title}: a copy is kept`);
      else t.match(title, /truncated|removed/);
    }
  });
  t.comment(JSON.stringify(counts));
  t.ok(counts.refused > counts.shortened && counts.shortened > 0);
});

/** Damages a file of an open store in place, as a disk does: the size stays. */
function damageInPlace(file: string, at: number, length: number): void {
  const handle = openSync(file, "r+");
  const bytes = Buffer.alloc(length);
  readSync(handle, bytes, 0, length, at);
  writeSync(
    handle,
    bytes.map((byte) => byte ^ 0x5a),
    0,
    length,
    at,
  );
  closeSync(handle);
}

const RUNNING_EDITS: readonly (readonly [string, (file: string, size: number) => void])[] = [
  ["changed at its start", (file) => damageInPlace(file, 3, 2)],
  ["changed in its middle", (file, size) => damageInPlace(file, size >> 1, 64)],
  ["changed in its index", (file, size) => damageInPlace(file, size - 100, 20)],
  ["changed in its footer", (file, size) => damageInPlace(file, size - 8, 1)],
  ["overwritten", (file, size) => damageInPlace(file, 0, size)],
  ["deleted", (file) => rmSync(file)],
];

const DAMAGED = /^the embedded store is damaged: .*\. .*\b[Ll]ost\b.*\. Writes are refused.*Stop the server, keep/;

t.test("damage of a table under a running store is found before a list and at an interval", async (t) => {
  const path = await makeStore();
  const names = readdirSync(path).filter((name) => name.endsWith(".ldb"));
  t.ok(names.length > 0);
  for (const name of names) {
    for (const [what, edit] of RUNNING_EDITS) {
      for (const by of ["list", "interval"] as const) {
        const copy = newPath();
        cpSync(path, copy, { recursive: true });
        const clock = new FakeClock(Date.now());
        const logged: string[] = [];
        const log = { ...silentLogger, error: (text: string) => void logged.push(text) };
        await using store = await open(copy, log, clock);
        const cached = await store.create("/registry/things/cached", makeValue(1));
        const title = `${name} ${what}, ${by}`;
        if (!existsSync(join(copy, name))) continue;
        edit(join(copy, name), statSync(join(copy, name)).size);
        await clock.advance(400_000);
        if (by === "list") {
          await t.rejects(store.list(prefixRange("/registry/")), { code: "corrupt", message: DAMAGED }, title);
        } else {
          const found = async (): Promise<boolean> => {
            await clock.advance(600_000);
            return store.status?.()?.alarms.length === 1;
          };
          await until("the damage to be found", found);
        }
        t.match(store.status?.()?.alarms, [{ type: "CORRUPT", message: DAMAGED }], title);
        t.match(store.status?.()?.alarms[0]?.message, name);
        t.equal((await store.get("/registry/things/cached"))?.modified, cached, "a cached value is served");
        await t.rejects(store.create("/registry/more", makeValue(1)), { code: "corrupt" }, title);
        await t.rejects(store.create("/registry/more", makeValue(1)), { code: "corrupt" }, title);
        await until("a line in the log", () => logged.length > 0);
        t.same(logged, ["The store is damaged"]);
        t.equal(existsSync(join(copy, "lost", name)), what !== "deleted", `${title}: a copy is kept`);
      }
    }
  }
});

t.test("damage of the other files under a running store is found at an interval, and reads go on", async (t) => {
  const path = await makeStore();
  for (const pattern of [/^CURRENT$/, /^MANIFEST-/, /\.log$/]) {
    for (const [what, edit] of RUNNING_EDITS) {
      const copy = newPath();
      cpSync(path, copy, { recursive: true });
      const clock = new FakeClock(Date.now());
      await using store = await open(copy, silentLogger, clock);
      await writeSome(store, 500, 520);
      const name = readdirSync(copy).findLast((each) => pattern.test(each))!;
      const { size } = statSync(join(copy, name));
      // The end of a log may be a write in progress.
      if (size < 200 ? what.includes("index") : /\.log$/.test(name) && /index|footer/.test(what)) continue;
      edit(join(copy, name), size);
      await until(`${name} ${what}`, async () => {
        await clock.advance(600_000);
        return store.status?.()?.alarms.length === 1;
      });
      t.match(store.status?.()?.alarms, [{ type: "CORRUPT", message: DAMAGED }], `${name} ${what}`);
      t.ok((await store.list(prefixRange("/registry/"))).items.length > 20);
      await t.rejects(store.create("/registry/more", makeValue(1)), { code: "corrupt" });
    }
  }
});

t.test("a store under load is not found to be damaged", async (t) => {
  const clock = new FakeClock(Date.now());
  await using store = await open(newPath(), silentLogger, clock);
  for (let round = 0; round < 12; round++) {
    const writes = Array.from({ length: 300 }, (_, i) => store.create(`/registry/${round}/${i}`, makeValue(i * 10)));
    const passed = clock.advance(3_700_000);
    await Promise.all([...writes, passed, store.list(prefixRange("/registry/"))]);
    await store.compact(store.current());
  }
  t.same(store.status?.()?.alarms, []);
  t.equal((await store.list(prefixRange("/registry/"))).items.length, 3600);
});
