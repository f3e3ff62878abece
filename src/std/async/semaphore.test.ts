import { setImmediate as turn } from "node:timers/promises";
import t from "tap";
import { Semaphore } from "./semaphore.ts";

const { signal } = new AbortController();

t.test("a semaphore starts the tasks that wait in their order, as others end", async (t) => {
  const semaphore = new Semaphore(2);
  const started: number[] = [];
  const ends = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const runs = ends.map(({ promise }, index) =>
    semaphore.run(async () => {
      started.push(index);
      await promise;
      return index;
    }, signal),
  );
  await turn();
  t.same(started, [0, 1]);
  ends[1]!.resolve();
  await turn();
  t.same(started, [0, 1, 2]);
  for (const { resolve } of ends) resolve();
  t.same(await Promise.all(runs), [0, 1, 2, 3]);
});

t.test("a task that fails frees its place, and an aborted task never starts", async (t) => {
  const semaphore = new Semaphore(1);
  const first = Promise.withResolvers<void>();
  const failing = semaphore.run(async () => {
    await first.promise;
    throw new Error("failed");
  }, signal);
  const stop = new AbortController();
  const waiting = semaphore.run(async () => "never", stop.signal);
  const last = semaphore.run(async () => "last", signal);
  stop.abort(new Error("stopped"));
  await t.rejects(waiting, { message: "stopped" });
  first.resolve();
  await t.rejects(failing, { message: "failed" });
  t.equal(await last, "last");
  t.equal(await semaphore.run(async () => "free", signal), "free");
});
