import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Level } from "level";
import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { testStore } from "../../testing/storage/conformance.ts";
import { prefixRange, type Revision, type Store, type WatchEvent } from "../store.ts";
import { versionKey } from "./keys.ts";
import { type LevelStoreOptions, openLevelStore } from "./level.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-level-"));
t.teardown(() => rmSync(directory, { recursive: true }));
let count = 0;
const newPath = (): string => join(directory, `${count++}`);
const ALL = prefixRange("/");
const bytes = (text: string): Uint8Array => Buffer.from(text);

function open(path: string, options: Partial<LevelStoreOptions> = {}, clock: Clock = new FakeClock()): Promise<Store> {
  return openLevelStore({ path, clock, log: silentLogger, compactionIntervalMs: 0, ...options });
}

async function texts(store: Store, revision?: Revision): Promise<string[]> {
  const { items } = await store.list(ALL, { revision });
  return items.map((item) => `${item.key}=${Buffer.from(item.value).toString()}`);
}

async function eventsUpTo(store: Store, from: Revision, revision = store.current()): Promise<WatchEvent[]> {
  const controller = new AbortController();
  const events: WatchEvent[] = [];
  if (from === revision) return events;
  for await (const batch of store.watch(ALL, from, controller.signal)) {
    events.push(...batch.events);
    if (batch.revision >= revision) break;
  }
  return events;
}

t.test("openLevelStore() is a Store", (t) => testStore(t, (clock) => open(newPath(), {}, clock), { isEmbedded: true }));

t.test("openLevelStore() restores values, history and revisions", async (t) => {
  const path = newPath();
  const first = await open(path);
  const a1 = await first.create("/a", bytes("a1"));
  const a2 = await first.update("/a", bytes("a2"), a1);
  const b1 = await first.create("/b", bytes("b1"));
  const last = await first.delete("/b", b1);
  await first[Symbol.asyncDispose]();
  await using again = await open(path);
  t.equal(again.current(), last);
  t.same(await texts(again), ["/a=a2"]);
  t.same(await texts(again, b1), ["/a=a2", "/b=b1"]);
  t.same(
    (await eventsUpTo(again, a1)).map((event) => event.type),
    ["put", "put", "delete"],
  );
  t.equal((await again.get("/a"))?.modified, a2);
  t.equal(await again.create("/c", bytes("c")), last + 1, "revisions go on");
});

t.test("openLevelStore() never reuses a revision, even of a store that was emptied and compacted", async (t) => {
  const path = newPath();
  const first = await open(path);
  const made = await first.create("/a", bytes("1"));
  const deleted = await first.delete("/a", made);
  await first.compact(deleted);
  await first[Symbol.asyncDispose]();
  await using again = await open(path);
  t.equal(again.current(), deleted);
  await t.rejects(again.list(ALL, { revision: made }), { code: "compacted" });
  t.equal(await again.create("/a", bytes("2")), deleted + 1);
});

t.test("openLevelStore() restores the expiry times of values", async (t) => {
  const path = newPath();
  const start = Date.UTC(2026, 0, 1);
  const first = await open(path, {}, new FakeClock(start));
  await first.create("/soon", bytes("x"), { ttlSeconds: 60 });
  await first.create("/later", bytes("x"), { ttlSeconds: 600 });
  await first[Symbol.asyncDispose]();
  const clock = new FakeClock(start + 120_000);
  await using again = await open(path, {}, clock);
  const revision = again.current();
  const events = eventsUpTo(again, revision, (revision + 1) as Revision);
  await clock.advance(1000);
  t.match(await events, [{ type: "delete", key: "/soon" }]);
  t.same(await texts(again), ["/later=x"]);
});

t.test("openLevelStore() with a compaction interval keeps history younger than the retention time", async (t) => {
  const clock = new FakeClock();
  await using store = await open(newPath(), { compactionIntervalMs: 1000 }, clock);
  const old = await store.create("/a", bytes("1"));
  await clock.advance(1000);
  const young = await store.update("/a", bytes("2"), old);
  const settled = async (): Promise<void> => {
    await store.compact(1 as Revision);
  };
  await settled();
  t.same(await texts(store, old), ["/a=1"], "one interval is not enough");
  await clock.advance(1000);
  await settled();
  t.same(await texts(store, old), ["/a=1"], "it was current one interval ago");
  await clock.advance(1000);
  await settled();
  await t.rejects(store.list(ALL, { revision: old }), { code: "compacted" });
  t.same(await texts(store, young), ["/a=2"]);
});

t.test("watch() reads changes from disk when they are no longer in memory", async (t) => {
  await using store = await open(newPath());
  const from = store.current();
  let head = await store.create("/hot", bytes("0"));
  await Promise.all(Array.from({ length: 2000 }, (_, i) => store.create(`/many/${i}`, bytes("x".repeat(2500)))));
  head = await store.update("/hot", bytes("1"), head);
  await store.delete("/hot", head);
  const events = await eventsUpTo(store, from);
  t.equal(events.length, 2003);
  const revisions = events.map((event) => (event.type === "put" ? event.item.modified : event.revision));
  t.same(
    revisions,
    Array.from({ length: 2003 }, (_, i) => from + 1 + i),
  );
  t.match(events.at(-1), { type: "delete", key: "/hot", previous: { modified: head } });
  t.match(events.at(-2), { type: "put", previous: { modified: from + 1 } });
});

t.test("a quiet store keeps no recent changes in memory, and reads them from disk", async (t) => {
  const clock = new FakeClock();
  await using store = await open(newPath(), {}, clock);
  const from = store.current();
  await Promise.all(Array.from({ length: 150 }, (_, i) => store.create(`/many/${i}`, bytes(String(i)))));
  const head = await store.create("/a", bytes("1"));
  const item = await store.get("/a");
  const lastItem = async (): Promise<unknown> => {
    const events = await eventsUpTo(store, from);
    t.equal(events.length, 151);
    const last = events.at(-1);
    return last?.type === "put" ? last.item : undefined;
  };
  await clock.advance(20_000);
  t.equal(await lastItem(), item, "more than 100 writes are not quiet");
  await clock.advance(20_000);
  t.not(await lastItem(), item);
  t.same(await lastItem(), item);
  const next = await store.update("/a", bytes("2"), head);
  t.match(await eventsUpTo(store, head), [{ type: "put", item: { modified: next }, previous: { modified: head } }]);
});

t.test("openLevelStore() fails with locked when another process has the store open", async (t) => {
  const path = newPath();
  await using _store = await open(path);
  await t.rejects(open(path), {
    code: "locked",
    message: `Cannot open the embedded store in "${path}": another process has it open`,
  });
});

/** Modifies the database of a closed store. */
async function tamper(path: string, change: (level: Level<Buffer, Buffer>) => Promise<void>): Promise<void> {
  const level = new Level<Buffer, Buffer>(path, { keyEncoding: "buffer", valueEncoding: "buffer" });
  await change(level);
  await level.close();
}

t.test("openLevelStore() fails with an error for a file in place of the directory", async (t) => {
  const file = newPath();
  writeFileSync(file, "");
  await t.rejects(open(file), { code: "unavailable", message: /^Cannot make directory .* EEXIST/ });
});

t.test("a read of a value whose bytes changed on disk fails with corrupt", async (t) => {
  const path = newPath();
  const store = await open(path);
  const revision = await store.create("/a", bytes("precious"));
  await store[Symbol.asyncDispose]();
  await tamper(path, async (level) => {
    const key = versionKey("/a", revision);
    const record = (await level.get(key))!;
    record[record.length - 1]! ^= 1;
    await level.put(key, record);
  });
  await using again = await open(path);
  const error = {
    code: "corrupt",
    message: /^Cannot read record "v\/a\.+" of the embedded store: its checksum is wrong$/,
  };
  await t.rejects(again.get("/a"), error);
  await t.rejects(again.list(ALL), error);
});

t.test("openLevelStore() reports a damaged table or log as corrupt", async (t) => {
  const path = newPath();
  const store = await open(path);
  for (let i = 0; i < 50; i++) await store.create(`/${i}`, bytes("x".repeat(1000)));
  await store[Symbol.asyncDispose]();
  const log = readdirSync(path).find((name) => name.endsWith(".log"))!;
  const content = readFileSync(join(path, log));
  content.fill(0x55, 20_000, 20_100);
  writeFileSync(join(path, log), content);
  await t.rejects(open(path), { code: "corrupt" });
  writeFileSync(join(path, "CURRENT"), "MANIFEST-999999\n");
  await t.rejects(open(path), { code: /corrupt|unavailable/ });
});

t.test("a log torn at any byte, as by a power cut, opens with all writes up to some revision", async (t) => {
  const path = newPath();
  const store = await open(path);
  const first = store.current();
  for (let i = 0; i < 30; i++) {
    const revision = await store.create(`/${i}`, bytes("x".repeat(100 + i)));
    if (i % 4 === 0) await store.delete(`/${i}`, revision);
  }
  const last = store.current();
  const states = new Map<number, string[]>();
  for (let revision = first; revision <= last; revision++)
    states.set(revision, await texts(store, revision as Revision));
  await store[Symbol.asyncDispose]();
  const log = readdirSync(path).find((name) => name.endsWith(".log"))!;
  const size = statSync(join(path, log)).size;
  const random = seededRandom(size);
  const reached = new Set<number>();
  for (let i = 0; i < 25; i++) {
    const copy = newPath();
    cpSync(path, copy, { recursive: true });
    // Written by the clean end, which a power cut prevents.
    rmSync(join(copy, "REVISION"));
    // The first write in the log is the format; a store without it was never opened.
    truncateSync(join(copy, log), 64 + Math.floor(random.fraction() * (size - 63)));
    await using again = await open(copy);
    reached.add(again.current());
    t.same(await texts(again), states.get(again.current()));
    t.equal((await eventsUpTo(again, first)).length, again.current() - first);
    t.equal(await again.create("/next", bytes("1")), again.current());
  }
  t.ok(reached.size > 10);
});

/** A child process that writes in a loop and prints the number of each acknowledged write. */
function spawnWriter(path: string): ChildProcess {
  const url = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href);
  const script = `
    import { writeSync } from "node:fs";
    import { openLevelStore } from ${url("./level.ts")};
    import { systemClock } from ${url("../../std/time/clock.ts")};
    import { silentLogger } from ${url("../../std/log/logger.ts")};
    const options = { clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
    const store = await openLevelStore({ path: ${JSON.stringify(path)}, ...options });
    let next = 0;
    const writer = async () => {
      for (;;) {
        const number = next++;
        const revision = await store.create("/" + number, Buffer.from("value " + number));
        if (number % 3 === 0) await store.update("/" + number, Buffer.from("again " + number), revision);
        writeSync(1, number + "\\n");
      }
    };
    await Promise.all(Array.from({ length: 16 }, writer));`;
  return spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
}

t.test("an acknowledged write survives kill -9", async (t) => {
  const path = newPath();
  const child = spawnWriter(path);
  t.teardown(() => child.kill("SIGKILL"));
  let output = "";
  await new Promise<void>((resolve) => {
    child.stdout!.on("data", (data) => {
      output += String(data);
      if (output.length > 8000) child.kill("SIGKILL");
    });
    child.stdout!.on("close", resolve);
  });
  const acknowledged = output.slice(0, output.lastIndexOf("\n")).split("\n").map(Number);
  t.ok(acknowledged.length > 500, `${acknowledged.length} writes`);
  await using store = await open(path);
  const found = new Set(await texts(store));
  const lost = acknowledged.filter((n) => !found.has(`/${n}=${n % 3 === 0 ? "again" : "value"} ${n}`));
  t.same(lost, [], "none is lost");
});

t.test(
  "a full disk fails writes with no-space; reads continue, and writes succeed again once there is space",
  async (t) => {
    const path = newPath();
    mkdirSync(path);
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=40m", "tmpfs", path], { stdio: "ignore" });
    } catch {
      console.log("# No file system can be mounted here: the checks of a full disk are left out");
      return;
    }
    t.teardown(() => execFileSync("umount", [path]));
    const clock = new FakeClock();
    const ballast = join(path, "ballast");
    // Leaves too little for a reserve.
    writeFileSync(ballast, Buffer.alloc(25_000_000));
    const store = await open(join(path, "store"), {}, clock);
    const value = Buffer.alloc(1_000_000, "x");
    await store.create("/kept", bytes("kept"));
    // Not measured yet by the store: LevelDB finds the disk full.
    writeFileSync(join(path, "more"), Buffer.alloc(13_000_000));
    let acknowledged = 0;
    const failure = await (async () => {
      for (; acknowledged < 100; acknowledged++) {
        try {
          await store.create(`/big/${acknowledged}`, value);
        } catch (error) {
          return error;
        }
      }
      return undefined;
    })();
    t.match(failure, { code: "no-space", message: /: no space is left on the device$/ });
    t.equal((await texts(store)).length, acknowledged + 1, "still readable");
    await t.rejects(store.create("/more", bytes("x")), { code: "no-space" });
    await clock.advance(10_000);
    await t.rejects(store.create("/more", bytes("x")), { code: "no-space" }, "still no space");
    rmSync(ballast);
    await clock.advance(10_000);
    await store.create("/more", bytes("x"));
    const keys = (await store.list(ALL)).items.map((item) => item.key);
    for (let i = 0; i < acknowledged; i++) t.ok(keys.includes(`/big/${i}`), "no acknowledged write is lost");
    await store[Symbol.asyncDispose]();
    await using again = await open(join(path, "store"));
    t.same(
      (await again.list(ALL)).items.map((item) => item.key),
      keys,
    );
  },
);

t.test("openLevelStore() removes other users' access to the directory, unless it contains other files", async (t) => {
  const warned: string[] = [];
  const log = { ...silentLogger, warn: (text: string) => void warned.push(text) };
  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  const [exclusive, shared] = [newPath(), newPath()];
  for (const path of [exclusive, shared]) mkdirSync(path, { mode: 0o755 });
  writeFileSync(join(shared, "notes.txt"), "");
  await (await open(exclusive, { log }))[Symbol.asyncDispose]();
  t.equal(modeOf(exclusive), 0o700);
  await (await open(shared, { log }))[Symbol.asyncDispose]();
  t.equal(modeOf(shared), 0o755);
  t.match(warned, [/^Removed other users. access to the directory of the store/, /^Other users can read the store/]);
  await (await open(exclusive, { log }))[Symbol.asyncDispose]();
  t.equal(warned.length, 2);
});

t.test("writes that may wait share a sync with the next write, or with those of a tenth of a second", async (t) => {
  const clock = new FakeClock();
  await using store = await open(newPath(), { isDeferrable: (key) => key.startsWith("/beats/") }, clock);
  const written: string[] = [];
  const create = async (key: string): Promise<void> => {
    await store.create(key, bytes("x"));
    written.push(key);
  };
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const beats = [create("/beats/1"), create("/beats/2")];
  await turns();
  t.same(written, []);
  t.equal(store.status?.()?.log?.syncs, 0);
  await Promise.all([...beats, create("/other")]);
  t.equal(store.status?.()?.log?.syncs, 1);
  const late = create("/beats/3");
  await turns();
  await clock.advance(100);
  await late;
  t.equal(store.status?.()?.log?.syncs, 2);
  t.ok((store.status?.()?.log?.bytes ?? 0) > 400);
  const last = create("/beats/4");
  await store[Symbol.asyncDispose]();
  await last;
  t.equal(written.length, 5);
});
