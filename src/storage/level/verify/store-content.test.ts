/** Stores that no damaged file explains: found before LevelDB changes a file, in the log and in tables. */
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Level } from "level";
import t, { type Test } from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { Revision, Store } from "../../store.ts";
import { FORMAT_KEY, logKey, REVISION_KEY } from "../keys.ts";
import { openLevelStore } from "../level.ts";
import { encodeNumber } from "../record.ts";

/** The type of the package has only what browsers have too. */
type Database = Level<Buffer, Buffer> & { compactRange(start: Buffer, end: Buffer): Promise<void> };

const open = (path: string): Promise<Store> =>
  openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });

async function withDatabase(path: string, work: (database: Database) => Promise<void>): Promise<void> {
  const database = new Level(path, { keyEncoding: "buffer", valueEncoding: "buffer" }) as Database;
  await database.open();
  await work(database);
  await database.close();
}

/** Names, contents and times of all files. */
function filesOf(path: string): readonly string[] {
  const names = readdirSync(path).filter((name) => statSync(join(path, name)).isFile());
  return names.map(
    (name) => `${name} ${statSync(join(path, name)).mtimeMs} ${readFileSync(join(path, name), "latin1")}`,
  );
}

/** A store with revisions 2 to 21, of which 5 is the oldest readable one. */
async function makeStore(path: string): Promise<void> {
  await using store = await open(path);
  for (let i = 0; i < 20; i++) await store.create(`/${i}`, Buffer.from(`value ${i}`));
  await store.compact(5 as Revision);
  rmSync(join(path, "RESERVE"));
}

const del = (revision: number) => (database: Database) => database.del(logKey(revision as Revision));
const putNumber = (key: Buffer, number: number) => (database: Database) => database.put(key, encodeNumber(key, number));
const clear = (database: Database): Promise<void> => database.clear();

interface Row {
  readonly title: string;
  readonly changes: readonly ((database: Database) => Promise<void>)[];
  readonly error: { readonly code: string; readonly message: RegExp };
}

const gap = (text: string): Row["error"] => ({
  code: "corrupt",
  message: new RegExp(
    `it is damaged: its history lacks ${text}\\. Lost are at most the writes.* No file was changed\\. `,
  ),
});
const foreign = { code: "foreign", message: /holds data of another program; use another directory$/ };

const ROWS: readonly Row[] = [
  {
    title: "a newer format",
    changes: [putNumber(FORMAT_KEY, 2)],
    error: { code: "newer-format", message: /is of format 2, this program supports 1; use a newer one$/ },
  },
  {
    title: "a newer format whose other numbers cannot be read",
    changes: [putNumber(FORMAT_KEY, 3), (database) => database.put(REVISION_KEY, Buffer.from("another encoding"))],
    error: { code: "newer-format", message: /is of format 3/ },
  },
  { title: "no format", changes: [(database) => database.del(FORMAT_KEY)], error: foreign },
  {
    title: "other data",
    changes: [clear, (database) => database.put(Buffer.from("hello"), Buffer.from("world"))],
    error: foreign,
  },
  {
    title: "other data whose keys look like those of numbers",
    changes: [
      clear,
      (database) => database.put(REVISION_KEY, Buffer.from("world")),
      (database) => database.put(FORMAT_KEY, Buffer.from("world")),
    ],
    error: foreign,
  },
  { title: "one missing revision", changes: [del(9)], error: gap("revision 9") },
  { title: "several", changes: [del(9), del(10), del(14)], error: gap("revisions 9 to 10") },
  { title: "the first ones after the last compaction", changes: [del(6), del(7)], error: gap("revisions 6 to 7") },
  { title: "the last one", changes: [del(21)], error: gap("revision 21") },
  { title: "revisions after the last one", changes: [putNumber(REVISION_KEY, 18)], error: gap("revisions 19 to 21") },
];

async function openError(path: string): Promise<unknown> {
  try {
    await (await open(path))[Symbol.asyncDispose]();
    return undefined;
  } catch (error) {
    return error;
  }
}

async function checkRefusal(t: Test, path: string, { title, error }: Row): Promise<void> {
  const before = filesOf(path);
  t.match(await openError(path), error, title);
  t.same(filesOf(path), before, `${title}: no file is changed`);
}

t.test("a store that cannot be read or has gaps is refused before LevelDB changes a file", async (t) => {
  const root = t.testdir();
  for (const [index, row] of ROWS.entries()) {
    const [path, tables] = [join(root, `log-${index}`), join(root, `tables-${index}`)];
    await makeStore(path);
    await withDatabase(path, async (database) => {
      for (const change of row.changes) await change(database);
    });
    rmSync(join(path, "REVISION"), { force: true });
    cpSync(path, tables, { recursive: true });
    // Opening writes the log to a table, and merging drops what is deleted.
    await withDatabase(tables, (database) => database.compactRange(Buffer.of(0), Buffer.of(255)));
    await checkRefusal(t, path, { ...row, title: `${row.title}, in the log` });
    await checkRefusal(t, tables, { ...row, title: `${row.title}, in tables` });
  }
});

t.test("a store whose revisions are in several tables and the log opens", async (t) => {
  const path = join(t.testdir(), "store");
  for (let start = 0; start < 4; start++) {
    await using store = await open(path);
    for (let i = 0; i < 30; i++) await store.create(`/${start}/${i}`, Buffer.alloc(2000, i));
    if (start === 1) await store.compact((store.current() - 10) as Revision);
  }
  await using store = await open(path);
  t.equal(store.current(), 121);
});
