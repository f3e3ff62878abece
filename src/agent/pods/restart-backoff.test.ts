import t from "tap";
import { RestartBackoff, remindMs, restartInitialMs, restartMaxMs } from "./restart-backoff.ts";

t.test("RestartBackoff doubles the delay up to its bound and forgets after a long run", async (t) => {
  const backoff = new RestartBackoff();
  t.equal(backoff.waiting("a", 0, 0), undefined, "the first restart is immediate");
  let now = 0;
  for (const delayMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    backoff.restarted("a", now, now);
    now += 1000;
    t.same(backoff.waiting("a", now, now), { delayMs, until: now + delayMs });
    t.equal(backoff.waiting("a", now, now + delayMs), undefined, "over");
  }
  const healthy = now + 3 * restartMaxMs;
  t.equal(backoff.waiting("a", healthy, healthy), undefined);
  backoff.restarted("a", healthy, healthy);
  t.equal(backoff.waiting("a", healthy, healthy)?.delayMs, restartInitialMs);
});

t.test("RestartBackoff speaks of a waiting container now and then only", async (t) => {
  const backoff = new RestartBackoff();
  t.ok(backoff.mention("a", "run", 0));
  t.notOk(backoff.mention("a", "run", remindMs - 1));
  t.ok(backoff.mention("b", "run", 1), "each for itself");
  t.ok(backoff.mention("a", "run", remindMs));
});
