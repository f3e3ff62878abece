import t from "tap";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { RestartBackoff, remindMs, restartDelays } from "./restart-backoff.ts";

t.test("RestartBackoff doubles the delay up to its bound and forgets after a long run", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock);
  t.equal(backoff.waiting("a", clock.now()), undefined, "the first restart is immediate");
  for (const delayMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    backoff.restarted("a", clock.now());
    await clock.advance(1000);
    const finishedAt = clock.now();
    t.same(backoff.waiting("a", finishedAt), { delayMs, until: clock.monotonic() + delayMs });
    await clock.advance(delayMs);
    t.equal(backoff.waiting("a", finishedAt), undefined, "over");
  }
  await clock.advance(3 * restartDelays.maxMs);
  t.equal(backoff.waiting("a", clock.now()), undefined);
  backoff.restarted("a", clock.now());
  t.equal(backoff.waiting("a", clock.now())?.delayMs, restartDelays.initialMs);
});

t.test("RestartBackoff has the delays that it is given, also for what another agent noted", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock, { initialMs: 1000, maxMs: 3000 });
  backoff.adopt("b", 300_000, clock.now());
  backoff.adopt("c", Number.NaN, clock.now());
  t.equal(backoff.delayOf("b"), 3000);
  t.equal(backoff.delayOf("c"), undefined);
  for (const delayMs of [1000, 2000, 3000, 3000]) {
    backoff.restarted("a", clock.now());
    t.equal(backoff.delayOf("a"), delayMs);
  }
  await clock.advance(599_000);
  t.equal(backoff.waiting("a", clock.now())?.delayMs, 3000, "they are forgotten no sooner");
});

t.test("RestartBackoff waits no longer than the delay for a run that ended in what is now the future", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock);
  backoff.restarted("a", clock.now());
  const finishedAt = clock.now() + 300_000;
  t.equal(backoff.waiting("a", finishedAt)?.delayMs, restartDelays.initialMs);
  await clock.advance(restartDelays.initialMs);
  t.equal(backoff.waiting("a", finishedAt), undefined);
});

t.test("RestartBackoff speaks of a waiting container now and then only", async (t) => {
  const clock = new FakeClock();
  const backoff = new RestartBackoff(clock);
  t.ok(backoff.mention("a", "run"));
  t.ok(backoff.mention("b", "run"), "each for itself");
  await clock.advance(remindMs - 1);
  t.notOk(backoff.mention("a", "run"));
  await clock.advance(1);
  t.ok(backoff.mention("a", "run"));
});
