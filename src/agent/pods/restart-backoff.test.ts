import t from "tap";
import { FakeClock } from "../../std/fake-clock.ts";
import { RestartBackoff, remindMs, restartInitialMs, restartMaxMs } from "./restart-backoff.ts";

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
  await clock.advance(3 * restartMaxMs);
  t.equal(backoff.waiting("a", clock.now()), undefined);
  backoff.restarted("a", clock.now());
  t.equal(backoff.waiting("a", clock.now())?.delayMs, restartInitialMs);
});

t.test("RestartBackoff waits no longer than the delay for a run that ended in what is now the future", async (t) => {
  const clock = new FakeClock(1_000_000);
  const backoff = new RestartBackoff(clock);
  backoff.restarted("a", clock.now());
  const finishedAt = clock.now() + 300_000;
  t.equal(backoff.waiting("a", finishedAt)?.delayMs, restartInitialMs);
  await clock.advance(restartInitialMs);
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
