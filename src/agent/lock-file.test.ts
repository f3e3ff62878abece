import { spawnSync } from "node:child_process";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../std/time/clock.ts";
import { acquireLock } from "./lock-file.ts";

const never = new AbortController().signal;
if (spawnSync("flock", ["--version"]).error !== undefined) console.error("There is no flock: locks are left out.");
else {
  t.test("acquireLock() waits for the lock, and waitForContention() of its holder resolves", async (t) => {
    const path = join(t.testdir(), "lock");
    const first = await acquireLock(path, never);
    const second = acquireLock(path, never);
    let taken = false;
    void second.then(() => {
      taken = true;
    });
    await first.waitForContention(systemClock, never);
    t.notOk(taken, "the second waits");
    await first[Symbol.asyncDispose]();
    await using _ = await second;
    const stop = AbortSignal.timeout(100);
    await t.rejects(
      (await second).waitForContention(systemClock, stop),
      { name: "TimeoutError" },
      "no process waits any more",
    );
  });

  t.test("acquireLock() rejects with the cause, and when its signal aborts", async (t) => {
    const path = join(t.testdir(), "lock");
    await t.rejects(acquireLock(join(path, "below"), never), { code: "ENOENT" });
    await using _ = await acquireLock(path, never);
    const message = `unable to acquire file lock on ${JSON.stringify(path)}: The operation was aborted`;
    await t.rejects(acquireLock(path, AbortSignal.timeout(100)), { message });
    const before = process.env.PATH;
    process.env.PATH = "";
    await t.rejects(
      acquireLock(join(t.testdirName, "other"), never),
      /: the program flock of util-linux was not found$/,
    );
    process.env.PATH = before;
  });
}
