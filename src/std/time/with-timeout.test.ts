import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { withTimeout } from "./with-timeout.ts";

t.test("withTimeout() resolves with the result of the work, and leaves no timer behind", async (t) => {
  const clock = new FakeClock();
  t.equal(await withTimeout(clock, 1000, Promise.resolve("done"), "late"), "done");
  await t.rejects(withTimeout(clock, 1000, Promise.reject(new Error("broken")), "late"), /broken/);
});

t.test("withTimeout() rejects with the time it waited when the work takes too long", async (t) => {
  const clock = new FakeClock();
  const waiting = withTimeout(clock, 1000, new Promise(() => {}), "The store did not answer");
  const rejected = t.rejects(waiting, /^The store did not answer within 1000 ms$/);
  await clock.advance(1000);
  await rejected;
});
