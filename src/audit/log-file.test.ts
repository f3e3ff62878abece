import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { silentLogger } from "../std/log/logger.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { LogFile, type LogFileOptions } from "./log-file.ts";

const MB = 2 ** 20;

function open(folder: string, clock: FakeClock, more: Partial<LogFileOptions> = {}): Promise<LogFile> {
  const options = { maxSizeMb: 1, maxBackups: 0, maxAgeDays: 0, compress: false, ...more };
  return LogFile.open({ path: join(folder, "logs", "audit.log"), ...options }, { clock, log: silentLogger });
}

const logs = (folder: string): string => join(folder, "logs");
const filesIn = (folder: string): readonly string[] => readdirSync(logs(folder)).sort();

function start(t: Test): { readonly folder: string; readonly clock: FakeClock } {
  return { folder: t.testdir({}), clock: new FakeClock(Date.UTC(2026, 10, 22, 13)) };
}

t.test("append() keeps the order of lines that wait for each other", async (t) => {
  const { folder, clock } = start(t);
  const file = await open(folder, clock);
  await Promise.all(Array.from({ length: 100 }, (_, index) => file.append(`${index}\n`)));
  for (let index = 100; index < 110; index++) await file.append(`${index}\n`);
  await file[Symbol.asyncDispose]();
  const lines = readFileSync(join(logs(folder), "audit.log"), "utf8")
    .trimEnd()
    .split("\n");
  t.same(
    lines,
    Array.from({ length: 110 }, (_, index) => String(index)),
  );
  t.equal(statSync(join(logs(folder), "audit.log")).mode & 0o777, 0o600);
  t.equal(statSync(logs(folder)).mode & 0o777, 0o700);
});

t.test("append() rotates the file at its size, and never overwrites a rotated one", async (t) => {
  const { folder, clock } = start(t);
  const file = await open(folder, clock);
  for (let index = 0; index < 3; index++) await file.append(`${"x".repeat(0.7 * MB)}\n`);
  await file[Symbol.asyncDispose]();
  t.same(filesIn(folder), ["audit-2026-11-22T13-00-00.000.log", "audit-2026-11-22T13-00-00.001.log", "audit.log"]);
});

t.test("the size of a file that existed counts", async (t) => {
  const { folder, clock } = start(t);
  const first = await open(folder, clock);
  await first.append(`${"x".repeat(0.7 * MB)}\n`);
  await first[Symbol.asyncDispose]();
  const second = await open(folder, clock);
  await second.append(`${"y".repeat(0.7 * MB)}\n`);
  await second[Symbol.asyncDispose]();
  t.equal(filesIn(folder).length, 2);
});

t.test("rotated files are removed by count and age, and compressed; others stay", async (t) => {
  const { folder, clock } = start(t);
  await (await open(folder, clock))[Symbol.asyncDispose]();
  const days = ["2026-11-21", "2026-11-20", "2026-11-19", "2026-10-01"];
  for (const day of days) writeFileSync(join(logs(folder), `audit-${day}T00-00-00.000.log`), "old\n");
  for (const name of ["audit-x.log", "other.log", "audit-2026-11-21T00-00-00.000.txt"]) {
    writeFileSync(join(logs(folder), name), "kept\n");
  }
  await (await open(folder, clock, { maxAgeDays: 30, compress: true }))[Symbol.asyncDispose]();
  const others = ["audit-2026-11-21T00-00-00.000.txt", "audit-x.log", "audit.log", "other.log"];
  const zipped = days.slice(0, 3).map((day) => `audit-${day}T00-00-00.000.log.gz`);
  t.same(filesIn(folder), [...zipped, ...others].sort());
  await (await open(folder, clock, { maxBackups: 1 }))[Symbol.asyncDispose]();
  t.same(filesIn(folder), [zipped[0], ...others].sort());
});

t.test("a write that fails rejects, and later ones succeed", async (t) => {
  const { clock } = start(t);
  const options = { path: "/dev/full", maxSizeMb: 0, maxBackups: 0, maxAgeDays: 0, compress: false };
  const file = await LogFile.open(options, { clock, log: silentLogger });
  await t.rejects(file.append("a\n"), { code: "ENOSPC" });
  await t.rejects(file.append("b\n"), { code: "ENOSPC" });
  await file[Symbol.asyncDispose]();
});
