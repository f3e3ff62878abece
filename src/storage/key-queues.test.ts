import t from "tap";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { KeyQueues } from "./key-queues.ts";

t.test("run() runs the writers of one key in turn, and those of other keys at the same time", async (t) => {
  const queues = new KeyQueues(new FakeClock());
  const log: string[] = [];
  const gate = Promise.withResolvers<void>();
  const writer = (name: string, wait?: Promise<void>) => async () => {
    log.push(`${name} starts`);
    await wait;
    log.push(`${name} ends`);
    return name;
  };
  const runs = [queues.run("/a", writer("a1", gate.promise)), queues.run("/a", writer("a2"))];
  const failing = queues.run("/a", () => Promise.reject(new Error("no")));
  runs.push(queues.run("/a", writer("a3")));
  t.equal(await queues.run("/b", writer("b")), "b");
  t.same(log, ["a1 starts", "b starts", "b ends"]);
  t.ok(queues.has("/a") && !queues.has("/b"));
  gate.resolve();
  await t.rejects(failing, { message: "no" });
  t.same(await Promise.all(runs), ["a1", "a2", "a3"]);
  t.same(log.slice(3), ["a1 ends", "a2 starts", "a2 ends", "a3 starts", "a3 ends"]);
  t.notOk(queues.has("/a"));
});

t.test("run() starts a writer at most a second after the one before it", async (t) => {
  const clock = new FakeClock();
  const queues = new KeyQueues(clock);
  const started: string[] = [];
  const gate = Promise.withResolvers<void>();
  const run = (name: string): Promise<void> => {
    return queues.run("/a", async () => {
      started.push(name);
      await gate.promise;
    });
  };
  const runs = ["1", "2", "3"].map(run);
  for (const expected of [["1"], ["1", "2"], ["1", "2", "3"]]) {
    await clock.advance(0);
    t.same(started, expected);
    await clock.advance(1000);
  }
  gate.resolve();
  await Promise.all(runs);
  t.equal(clock.pending, 0);
});
