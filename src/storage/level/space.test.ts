/** The quota of the store and a full disk. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { prefixRange, type Revision, type Store, StoreError } from "../store.ts";
import { openLevelStore } from "./level.ts";

const MIB = 2 ** 20;
const ALL = prefixRange("/");
const directory = mkdtempSync(join(tmpdir(), "svc-space-"));
t.teardown(() => rmSync(directory, { recursive: true }));

async function open(path: string, clock = new FakeClock(), quotaBytes?: number): Promise<Store> {
  return await openLevelStore({ path, clock, log: silentLogger, compactionIntervalMs: 0, quotaBytes });
}

/** Does not compress. */
function makeValue(size: number, seed: number): Buffer {
  const value = Buffer.alloc(size);
  let state = seed + 1;
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    value[i] = state >>> 24;
  }
  return value;
}

const alarmsOf = (store: Store): readonly string[] => store.status?.()?.alarms.map(({ type }) => type) ?? [];

/**
 * Creates values until they are refused, also after LevelDB has merged its log and tables; returns their keys and
 * revisions.
 */
async function fill(t: Test, store: Store, clock: FakeClock, size: number): Promise<Map<string, Revision>> {
  const made = new Map<string, Revision>();
  for (let refused = 0; refused < 5; ) {
    const key = `/big/${made.size}`;
    try {
      made.set(key, await store.create(key, makeValue(size, made.size)));
      refused = 0;
    } catch (error) {
      t.match(error, { code: "no-space" });
      refused++;
      // Waits for the compaction of the alarm.
      await store.compact(1 as Revision);
      await sleep(20);
      await clock.advance(5000);
    }
  }
  return made;
}

t.test("a store over its quota accepts reads, deletions and small updates until it has been compacted", async (t) => {
  const path = join(directory, "quota");
  const clock = new FakeClock();
  await using store = await open(path, clock, 8 * MIB);
  const lease = await store.create("/lease", Buffer.alloc(300));
  t.same(alarmsOf(store), []);
  const made = await fill(t, store, clock, 200_000);
  t.ok(made.size > 20 && made.size < 50, `${made.size} values`);
  t.match(store.status?.(), {
    quotaBytes: 8 * MIB,
    alarms: [{ type: "NOSPACE", message: /^the store has \d+ bytes, its quota is 8388608 \(--kvstore-quota-bytes\)/ }],
  });
  const renewed = await store.update("/lease", Buffer.alloc(500), lease);
  await t.rejects(store.update("/lease", Buffer.alloc(20_000), renewed), { code: "no-space" }, "an update that adds");
  await t.rejects(store.update("/lease", Buffer.alloc(20_000), lease), { code: "conflict" });
  await t.rejects(store.create("/lease", Buffer.alloc(1)), { code: "exists" });
  t.equal((await store.list(ALL)).items.length, made.size + 1);
  for (const [key, revision] of made) await store.delete(key, revision);
  t.same(alarmsOf(store), ["NOSPACE"], "the history has the values");
  await store.compact(store.current());
  await until("the alarm to end, and the space to be free", async () => {
    await clock.advance(5000);
    return alarmsOf(store).length === 0 && (store.status?.()?.sizeBytes ?? 0) < MIB;
  });
  await store.create("/next", makeValue(200_000, 1));
});

t.test("updates that replace large values are refused when their history exceeds the quota by a tenth", async (t) => {
  await using store = await open(join(directory, "history"), new FakeClock(), 4 * MIB);
  let revision = await store.create("/a", makeValue(200_000, 0));
  let updates = 0;
  const update = async (): Promise<void> => {
    for (; updates < 1000; updates++) revision = await store.update("/a", makeValue(200_000, updates), revision);
  };
  await t.rejects(update(), { code: "no-space" });
  t.ok(updates > 15 && updates < 30, `${updates} updates`);
  await store.delete("/a", revision);
});

t.test("a store over its quota has the alarm after a restart, and none with a larger quota", async (t) => {
  const path = join(directory, "restart");
  {
    const clock = new FakeClock();
    await using store = await open(path, clock, 2 * MIB);
    await fill(t, store, clock, 100_000);
  }
  {
    await using store = await open(path, new FakeClock(), 2 * MIB);
    t.same(alarmsOf(store), ["NOSPACE"]);
  }
  await using store = await open(path, new FakeClock(), 20 * MIB);
  t.same(alarmsOf(store), []);
  await store.create("/next", makeValue(100_000, 1));
});

/** Undefined when this process cannot mount. */
function mountDisk(t: Test, name: string, size: string): string | undefined {
  const path = join(directory, name);
  mkdirSync(path);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path], { stdio: "ignore" });
  } catch {
    t.comment("No file system can be mounted here");
    return undefined;
  }
  t.teardown(() => execFileSync("umount", ["--lazy", path]));
  return path;
}

const freeBytes = (path: string): number =>
  Number(execFileSync("df", ["--output=avail", "--block-size=1", path]).toString().split("\n")[1]);

/** The reserve is a third of what is free above the threshold of the alarm, and of a large disk 32 MiB. */
for (const { size, reserveMib } of [
  { size: "192m", reserveMib: 32 },
  { size: "64m", reserveMib: 18 },
  { size: "40m", reserveMib: 11 },
]) {
  t.test(`on a full disk of ${size} the reserve serves deletions and small updates, also after a restart`, (t) =>
    testFullDisk(t, size, reserveMib * MIB),
  );
}

async function testFullDisk(t: Test, size: string, reserveBytes: number): Promise<void> {
  const disk = mountDisk(t, `disk-${size}`, size);
  if (disk === undefined) return;
  const [path, ballast] = [join(disk, "store"), join(disk, "ballast")];
  const clock = new FakeClock();
  const reserve = join(path, "RESERVE");
  let later: Revision;
  {
    await using store = await open(path, clock);
    const kept = await store.create("/kept", Buffer.alloc(300));
    later = await store.create("/later", Buffer.alloc(300));
    t.equal(statSync(reserve).size, reserveBytes, "the reserve exists when the store is open");
    // Not even the log can grow.
    writeFileSync(ballast, Buffer.alloc(freeBytes(disk) - 4096));
    await until("the alarm", async () => {
      await clock.advance(30_000);
      return alarmsOf(store).length > 0;
    });
    t.match(store.status?.()?.alarms, [{ type: "NOSPACE", message: /^the disk of the store has \d+ bytes left/ }]);
    await t.rejects(store.create("/more", Buffer.alloc(10)), { code: "no-space" });
    t.equal((await store.list(ALL)).items.length, 2, "reads go on");
    await store.delete("/kept", kept);
    for (let i = 0; i < 200; i++) later = await store.update("/later", Buffer.alloc(2000), later);
    t.notOk(existsSync(reserve), "the reserve is in use");
    await t.rejects(store.create("/more", Buffer.alloc(10)), { code: "no-space" });
  }
  {
    await using store = await open(path, clock);
    t.same(
      (await store.list(ALL)).items.map(({ key }) => key),
      ["/later"],
    );
    rmSync(ballast);
    await until("no alarm, and the reserve", async () => {
      await clock.advance(5000);
      return alarmsOf(store).length === 0 && existsSync(reserve) && statSync(reserve).size > 0.9 * reserveBytes;
    });
    await store.create("/more", Buffer.alloc(10));
  }
}

t.test("a store that fills a small disk deletes, and accepts writes again after that", async (t) => {
  const disk = mountDisk(t, "small-full", "48m");
  if (disk === undefined) return;
  const path = join(disk, "store");
  const clock = new FakeClock();
  await using store = await open(path, clock);
  let lease = await store.create("/lease", Buffer.alloc(300));
  const made = await fill(t, store, clock, 200_000);
  t.ok(made.size > 20, `${made.size} values`);
  t.same(alarmsOf(store), ["NOSPACE"]);
  for (const [key, revision] of made) await store.delete(key, revision);
  t.equal((await store.list(ALL)).items.length, 1);
  await until("the alarm to end", async () => {
    // Merging tables may find the disk full: the next write, such as of a lease, opens the store again.
    lease = await store.update("/lease", Buffer.alloc(300), lease).catch(() => lease);
    await store.compact(store.current()).catch((error: unknown) => t.match(error, { code: "no-space" }));
    await clock.advance(5000);
    return alarmsOf(store).length === 0;
  });
  await store.create("/next", makeValue(200_000, 1));
});

t.test("a deletion succeeds when the disk is full right after the start", async (t) => {
  const disk = mountDisk(t, "full-at-once", "64m");
  if (disk === undefined) return;
  await using store = await open(join(disk, "store"));
  const made: Revision[] = [];
  for (let i = 0; i < 100; i++) made.push(await store.create(`/a/${i}`, Buffer.alloc(300)));
  // No timer of the store has run; the alarm is off.
  writeFileSync(join(disk, "ballast"), Buffer.alloc(freeBytes(disk)));
  for (const [i, revision] of made.entries()) await store.delete(`/a/${i}`, revision);
  t.notOk(existsSync(join(disk, "store", "RESERVE")), "the reserve is in use");
  await t.rejects(store.create("/b", Buffer.alloc(300)), { code: "no-space" });
});

t.test("a store on a disk without space to open it is refused and not changed", async (t) => {
  const disk = mountDisk(t, "small", "40m");
  if (disk === undefined) return;
  const path = join(disk, "store");
  {
    await using store = await open(path);
    await store.create("/a", Buffer.alloc(300));
  }
  const ballast = join(disk, "ballast");
  rmSync(join(path, "RESERVE"));
  writeFileSync(ballast, Buffer.alloc(freeBytes(disk) - MIB));
  const failure = await open(path).catch((error: unknown) => error);
  t.ok(failure instanceof StoreError);
  t.match(failure, { code: "no-space", message: /its disk has less than \d+ bytes left\. Nothing was changed/ });
  rmSync(ballast);
  await using store = await open(path);
  t.equal((await store.list(ALL)).items.length, 1);
});
