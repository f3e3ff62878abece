import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { removeLogs, rotateLogs } from "./log-rotation.ts";
import { RemovedLogs } from "./removed-logs.ts";

/** A running container whose log has at most 100 bytes and 4 files. */
function startRotation(t: Test) {
  const directory = join(t.testdir(), "pod", "c");
  mkdirSync(directory, { recursive: true });
  const path = join(directory, "0.log");
  const clock = new FakeClock(Date.parse("2026-01-01T00:00:00Z"));
  const { runtime, calls } = new FakeRuntime(clock);
  const stop = new AbortController();
  const container = { id: "c1", logPath: path, state: "running" };
  const pods = { workers: [{ observation: { containers: [container] } }] } as never;
  const limits = { maxFiles: 4, maxBytes: 100, workers: 2, periodMs: 10_000 };
  const removed = new RemovedLogs(silentLogger);
  const ended = rotateLogs({ runtime, clock, log: silentLogger, pods, ...limits, removed, signal: stop.signal });
  t.teardown(() => {
    stop.abort();
    return ended;
  });
  const files = (): readonly string[] => readdirSync(directory).sort();
  return {
    directory,
    path,
    files,
    async until(holds: () => boolean): Promise<void> {
      for (let step = 0; step < 10_000 && !holds(); step++) {
        await setImmediate();
        await clock.advance(step % 100 === 99 ? 10_000 : 0);
      }
    },
    removed,
    reopened: () => calls.filter(({ method }) => method === "reopenContainerLog").length,
  };
}

t.test(
  "rotateLogs() renames full logs, compresses all but the last rotated one, and keeps the maximum number of files",
  async (t) => {
    const { directory, path, files, until, reopened, removed } = startRotation(t);
    for (let run = 1; run <= 4; run++) {
      writeFileSync(path, String(run).repeat(101));
      await until(() => reopened() === run);
    }
    const countCompressed = (): number => files().filter((name) => name.endsWith(".gz")).length;
    await until(() => files().length === 3 && countCompressed() === 2);
    const kept = files();
    t.equal(kept.length, 3, "without the current one, which the fake runtime does not reopen");
    const [oldest = "", second = "", last = ""] = kept;
    t.match(kept, [/^0\.log\.20260101-\d{6}\.gz$/, /\.gz$/, /^0\.log\.20260101-\d{6}$/]);
    const stampOf = (name: string): string => name.slice("0.log.".length, "0.log.20260101-000000".length);
    t.ok(removed.hasBetween(path, "20260101-000000", stampOf(oldest)), "followers find the removed log");
    t.notOk(removed.hasBetween(path, stampOf(oldest), undefined), "and none that is left");
    t.equal(gunzipSync(readFileSync(join(directory, oldest))).toString(), "2".repeat(101));
    t.equal(gunzipSync(readFileSync(join(directory, second))).toString(), "3".repeat(101));
    t.equal(readFileSync(join(directory, last), "utf8"), "4".repeat(101));
  },
);

t.test("rotateLogs() removes unfinished files, and compresses no file outside of the log directory", async (t) => {
  const { directory, path, files, until, reopened } = startRotation(t);
  writeFileSync(join(directory, "0.log.20250101-000000.tmp"), "half");
  writeFileSync(join(directory, "other"), "secret");
  linkSync(join(directory, "other"), join(directory, "1.log"));
  writeFileSync(path, "x".repeat(101));
  await until(() => reopened() === 1 && files().length === 3);
  t.match(files(), [/^0\.log\.2026\d{4}-\d{6}$/, "1.log", "other"]);

  symlinkSync(join(directory, "other"), join(directory, "0.log.20250202-000000"));
  writeFileSync(path, "y".repeat(101));
  await until(() => reopened() === 2 && files().length === 5 && files()[1]?.endsWith(".gz") === true);
  const [link = "", first = "", last = ""] = files();
  t.match(
    [link, first, last],
    ["0.log.20250202-000000", /\.gz$/, /^0\.log\.2026/],
    "a symbolic link stays until it is too old",
  );
});

t.test("rotateLogs() reopens a log that is missing since the agent ended in the middle of a rotation", async (t) => {
  const { directory, files, until, reopened } = startRotation(t);
  writeFileSync(join(directory, "0.log.20260101-000000"), "still written");
  await until(() => reopened() === 1);
  t.same(files(), ["0.log.20260101-000000"]);
});

t.test("rotateLogs() reopens a log that was removed, and rotates one that has the maximum size", async (t) => {
  const { path, files, until, reopened } = startRotation(t);
  await until(() => reopened() === 1);
  t.same(files(), []);
  writeFileSync(path, "x".repeat(99));
  await until(() => false);
  t.same(files(), ["0.log"]);
  writeFileSync(path, "x".repeat(100));
  await until(() => files()[0] !== "0.log");
  t.match(files(), [/^0\.log\.20260101-\d{6}$/]);
});

t.test("rotateLogs() gives each log a later name than the one before, also when the clock was set back", async (t) => {
  const { directory, path, files, until, reopened } = startRotation(t);
  writeFileSync(join(directory, "0.log.20991231-235959"), "earlier");
  writeFileSync(path, "x".repeat(101));
  await until(() => reopened() === 1 && files().length === 2 && files()[0]?.endsWith(".gz") === true);
  t.match(files(), [/^0\.log\.20991231-235959/, "0.log.21000101-000000"]);
});

t.test("rotateLogs() bounds the size of rotated logs, and keeps the last, however large it is", async (t) => {
  const { path, files, until, reopened } = startRotation(t);
  for (let run = 1; run <= 3; run++) {
    writeFileSync(path, String(run).repeat(401));
    await until(() => reopened() === run && files().length === 1);
  }
  t.match(files(), [/^0\.log\.20260101-\d{6}$/]);
});

t.test("removeLogs() removes all log files of a run and none of other runs", async (t) => {
  const directory = t.testdir({
    "1.log": "",
    "1.log.20260101-000000": "",
    "1.log.20250101-000000.gz": "",
    "11.log": "",
  });
  await removeLogs(join(directory, "1.log"));
  t.same(readdirSync(directory), ["11.log"]);
  await removeLogs(join(directory, "absent", "1.log"));
});
