import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { LogChanges } from "./log-changes.ts";

const { signal } = new AbortController();
const never = (): boolean => false;

t.test("LogChanges has one watcher for each directory, and wakes all that wait", async (t) => {
  const directory = t.testdir({ "0.log": "" });
  const changes = new LogChanges(systemClock);
  const first = changes.expect(directory);
  t.equal(changes.expect(directory), first);
  const all = Promise.all(Array.from({ length: 200 }, () => changes.wait(first, never, signal)));
  appendFileSync(join(directory, "0.log"), "x");
  await all;
  t.equal(first.hasHappened, true);
  const second = changes.expect(directory);
  t.not(second, first);
  t.equal(second.hasHappened, false);
  changes.release(second);
  t.equal(second.hasHappened, true, "a change without a waiter is closed");
});

t.test(
  "LogChanges resolves when the log is over, when the signal aborts, and after a change that has happened",
  async (t) => {
    const directory = t.testdir({});
    const changes = new LogChanges(systemClock);
    await changes.wait(changes.expect(directory), () => true, signal);
    await changes.wait(changes.expect(directory), never, AbortSignal.timeout(10));
    await changes.wait(changes.expect(directory), never, AbortSignal.abort());
    const change = changes.expect(directory);
    writeFileSync(join(directory, "new"), "");
    while (!change.hasHappened) await systemClock.sleep(5);
    await changes.wait(change, never, signal);
    // A directory that cannot be watched is checked with the timer.
    await changes.wait(changes.expect(join(directory, "absent")), never, signal);
  },
);
