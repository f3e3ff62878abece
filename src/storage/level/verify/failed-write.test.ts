/** No damage: a write that failed, whose operations LevelDB counts, and a power cut while it creates its files. */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { prefixRange, type Store } from "../../store.ts";
import { openLevelStore } from "../level.ts";
import { crc32c, maskCrc32c } from "./crc32c.ts";
import { RevisionFile, readRevisionFile } from "./revision-file.ts";

const KEYS = prefixRange("/");
/** The tag of the last sequence number in a record of MANIFEST. */
const LAST_SEQUENCE = 4;
const FULL_RECORD = 1;

const open = (path: string): Promise<Store> =>
  openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });

/** LevelDB writes such a record when it has merged tables after the failed write. */
function countOperations(path: string, last: number): void {
  const payload = Buffer.from([LAST_SEQUENCE, (last & 0x7f) | 0x80, last >> 7]);
  const header = Buffer.alloc(7);
  header.writeUInt32LE(maskCrc32c(crc32c(Buffer.concat([Buffer.of(FULL_RECORD), payload]))), 0);
  header.writeUInt16LE(payload.length, 4);
  header.writeUInt8(FULL_RECORD, 6);
  const name = readFileSync(join(path, "CURRENT"), "latin1").trimEnd();
  appendFileSync(join(path, name), Buffer.concat([header, payload]));
}

/** A store with twenty objects, and a copy of its files as a crash would leave them. */
async function copyOpenStore(t: Test) {
  const root = t.testdir();
  const [path, crashed] = [join(root, "store"), join(root, "crashed")];
  const store = await open(path);
  for (let i = 0; i < 20; i++) await store.create(`/${i}`, Buffer.from("x"));
  cpSync(path, crashed, { recursive: true });
  return { store, crashed, revision: store.current() };
}

t.test("a store whose last write failed opens with all acknowledged writes", async (t) => {
  const { store, crashed, revision } = await copyOpenStore(t);
  await store[Symbol.asyncDispose]();
  countOperations(crashed, 5000);
  await t.rejects(open(crashed), { code: "corrupt", message: /the end of \d+\.log is missing/ });
  const file = await RevisionFile.open(crashed, new FakeClock(), revision);
  await file.recordFailure(revision);
  t.match(await readRevisionFile(crashed), { revision });
  for (let start = 0; start < 2; start++) {
    await using again = await open(crashed);
    t.equal((await again.list(KEYS)).items.length, 20 + start);
    await again.create(`/after-${start}`, Buffer.from("y"));
  }
  await file.close();
});

t.test("a store that has lost acknowledged writes before a failed one is refused", async (t) => {
  const { store, crashed, revision } = await copyOpenStore(t);
  await store.create("/lost", Buffer.from("x"));
  await store[Symbol.asyncDispose]();
  countOperations(crashed, 5000);
  const file = await RevisionFile.open(crashed, new FakeClock(), revision);
  await file.recordFailure(store.current());
  await t.rejects(open(crashed), { code: "corrupt" });
  await file.close();
});

t.test("a store whose creation a power cut has ended is created again", async (t) => {
  const path = join(t.testdir(), "store");
  mkdirSync(path);
  writeFileSync(join(path, "CURRENT"), "MANIFEST-000001\n");
  writeFileSync(join(path, "MANIFEST-000001"), "");
  writeFileSync(join(path, "000003.log"), "");
  {
    await using store = await open(path);
    await store.create("/a", Buffer.from("x"));
  }
  const named = join(t.testdir(), "named");
  mkdirSync(named);
  for (const name of ["MANIFEST-000001", "000003.log"]) writeFileSync(join(named, name), "");
  await using store = await open(named);
  await store.create("/a", Buffer.from("x"));
});

t.test("a store whose opening a power cut has ended, after an incomplete write, opens with all others", async (t) => {
  const [path, crashed] = [join(t.testdir(), "store"), join(t.testdir(), "crashed")];
  const store = await open(path);
  for (let i = 0; i < 20; i++) await store.create(`/${i}`, Buffer.from("x"));
  cpSync(path, crashed, { recursive: true });
  await store[Symbol.asyncDispose]();
  const log = readdirSync(crashed).find((name) => name.endsWith(".log"))!;
  // The header of a record of 100 bytes, and the log that the next start creates.
  appendFileSync(join(crashed, log), Buffer.from([1, 2, 3, 4, 100, 0, 1]));
  writeFileSync(join(crashed, "999999.log"), "");
  await using again = await open(crashed);
  t.equal((await again.list(KEYS)).items.length, 20);
});

t.test("a store with writes and an empty MANIFEST is refused, and not changed", async (t) => {
  const path = join(t.testdir(), "store");
  mkdirSync(path);
  writeFileSync(join(path, "CURRENT"), "MANIFEST-000001\n");
  writeFileSync(join(path, "MANIFEST-000001"), "");
  writeFileSync(join(path, "000003.log"), "some bytes");
  await t.rejects(open(path), { code: "corrupt", message: /MANIFEST-000001 has no records/ });
  t.ok(existsSync(join(path, "CURRENT")));
});

t.test(
  "a store whose opening a power cut has ended, after its old log was deleted, opens with all writes",
  async (t) => {
    const root = t.testdir();
    const [path, before] = [join(root, "store"), join(root, "before")];
    const write = async (key: string): Promise<void> => {
      await using store = await open(path);
      await store.create(key, Buffer.from("x"));
    };
    await write("/first");
    await write("/second");
    cpSync(path, before, { recursive: true });
    await write("/third");
    const cut = (damage: (image: string) => void): string => {
      const image = join(root, "cut");
      rmSync(image, { recursive: true, force: true });
      cpSync(path, image, { recursive: true });
      // The file system has lost the renaming of CURRENT only.
      const old = readFileSync(join(before, "CURRENT"), "latin1");
      writeFileSync(join(image, "CURRENT"), old);
      cpSync(join(before, old.trimEnd()), join(image, old.trimEnd()));
      damage(image);
      return image;
    };
    for (let start = 0; start < 2; start++) {
      await using again = await open(cut(() => {}));
      t.same(
        (await again.list(KEYS)).items.map(({ key }) => key),
        ["/first", "/second", "/third"],
      );
    }
    const newest = readFileSync(join(path, "CURRENT"), "latin1").trimEnd();
    const shorten = (image: string): void => truncateSync(join(image, newest), 20);
    await t.rejects(open(cut(shorten)), { code: "corrupt", message: /the write-ahead log \d+\.log is missing/ });
    const removeTables = (image: string): void => {
      for (const name of readdirSync(image).filter((each) => each.endsWith(".ldb"))) rmSync(join(image, name));
    };
    await t.rejects(open(cut(removeTables)), { code: "corrupt" });
  },
);

/** Changes the end of the last record, as when its last sector is not written. */
function tearManifest(path: string): string {
  const name = readFileSync(join(path, "CURRENT"), "latin1").trimEnd();
  const file = join(path, name);
  const content = readFileSync(file);
  writeFileSync(file, Buffer.concat([content.subarray(0, -1), Buffer.of(content.at(-1)! ^ 1)]));
  return name;
}

t.test(
  "a store whose last record of the MANIFEST a power cut has torn opens with all acknowledged writes",
  async (t) => {
    const { store, crashed } = await copyOpenStore(t);
    await store[Symbol.asyncDispose]();
    // LevelDB has not deleted a file of the version before this record.
    countOperations(crashed, 5000);
    const name = tearManifest(crashed);
    for (let start = 0; start < 2; start++) {
      await using again = await open(crashed);
      t.equal((await again.list(KEYS)).items.length, 20 + start);
      await again.create(`/after-${start}`, Buffer.from("y"));
    }
    t.ok(existsSync(join(crashed, "lost", name)), "a copy is kept");
  },
);

t.test(
  "a store whose last record of the MANIFEST is damaged after files of the version before were deleted is refused",
  async (t) => {
    const path = join(t.testdir(), "store");
    for (let start = 0; start < 2; start++) {
      const store = await open(path);
      for (let i = 0; i < 20; i++) await store.create(`/${start}-${i}`, Buffer.from("x"));
      await store[Symbol.asyncDispose]();
    }
    const before = readdirSync(path);
    tearManifest(path);
    await t.rejects(open(path), { code: "corrupt", message: /the record at offset \d+ of MANIFEST-\d+ has a wrong/ });
    t.same(readdirSync(path), before, "no file is changed");
  },
);
