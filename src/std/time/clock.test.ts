import t from "tap";
import { systemClock } from "./clock.ts";

t.test("systemClock returns the time of day and measures durations", async (t) => {
  t.ok(Math.abs(systemClock.now() - Date.now()) < 1000);
  const start = systemClock.monotonic();
  await systemClock.sleep(2);
  t.ok(systemClock.monotonic() - start >= 1);
});

t.test("systemClock.sleep() rejects with the reason of an abort, before or while it sleeps", async (t) => {
  await t.rejects(systemClock.sleep(60_000, AbortSignal.abort(new Error("early"))), { message: "early" });
  const controller = new AbortController();
  const asleep = systemClock.sleep(60_000, controller.signal);
  controller.abort(new Error("late"));
  await t.rejects(asleep, { message: "late" });
});

t.test("systemClock.timer() fires once, unless cancelled, and takes delays longer than Node's timers", async (t) => {
  let fired = 0;
  const cancelled = systemClock.timer(1, () => fired++);
  cancelled.cancel();
  const far = systemClock.timer(2 ** 40, () => fired++);
  await new Promise<void>((resolve) => systemClock.timer(5, resolve));
  far.cancel();
  t.equal(fired, 0);
});
