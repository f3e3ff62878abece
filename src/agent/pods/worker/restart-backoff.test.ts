import t from "tap";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { defaultRestartDelays, RestartBackoff, reportIntervalMs } from "./restart-backoff.ts";

t.test("RestartBackoff doubles the delay up to its maximum and resets it after a long run", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock);
  t.equal(backoff.remainingDelay("a", clock.now()), undefined, "the first restart is immediate");
  for (const delayMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    backoff.recordRestart("a", clock.now());
    await clock.advance(1000);
    const finishedAt = clock.now();
    t.same(backoff.remainingDelay("a", finishedAt), { delayMs, until: clock.monotonic() + delayMs });
    await clock.advance(delayMs);
    t.equal(backoff.remainingDelay("a", finishedAt), undefined, "the delay is over");
  }
  await clock.advance(3 * defaultRestartDelays.maxMs);
  t.equal(backoff.remainingDelay("a", clock.now()), undefined);
  backoff.recordRestart("a", clock.now());
  t.equal(backoff.remainingDelay("a", clock.now())?.delayMs, defaultRestartDelays.initialMs);
});

t.test("RestartBackoff uses the configured delays, also for the recorded delay of another agent", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock, { initialMs: 1000, maxMs: 3000 });
  backoff.adopt("b", 300_000, clock.now());
  backoff.adopt("c", Number.NaN, clock.now());
  t.equal(backoff.getDelay("b"), 3000);
  t.equal(backoff.getDelay("c"), undefined);
  for (const delayMs of [1000, 2000, 3000, 3000]) {
    backoff.recordRestart("a", clock.now());
    t.equal(backoff.getDelay("a"), delayMs);
  }
  await clock.advance(599_000);
  t.equal(
    backoff.remainingDelay("a", clock.now())?.delayMs,
    3000,
    "the reset does not depend on the configured delays",
  );
});

t.test(
  "RestartBackoff waits at most the delay for a run whose end is in the future after the clock was set",
  async (t) => {
    const clock = new FakeClock(1_000_000);
    const backoff = new RestartBackoff(clock);
    backoff.recordRestart("a", clock.now());
    const finishedAt = clock.now() + 300_000;
    t.equal(backoff.remainingDelay("a", finishedAt)?.delayMs, defaultRestartDelays.initialMs);
    await clock.advance(defaultRestartDelays.initialMs);
    t.equal(backoff.remainingDelay("a", finishedAt), undefined);
  },
);

t.test("RestartBackoff limits how often the BackOff event of a container is recorded", async (t) => {
  const clock = new FakeClock();
  const backoff = new RestartBackoff(clock);
  t.ok(backoff.shouldReport("a", "run"));
  t.ok(backoff.shouldReport("b", "run"), "containers are independent");
  await clock.advance(reportIntervalMs - 1);
  t.notOk(backoff.shouldReport("a", "run"));
  await clock.advance(1);
  t.ok(backoff.shouldReport("a", "run"));
});
