import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import type { StoreFeed } from "../../storage/watch/feed.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { runReconcilers } from "./periodic-reconciler.ts";

t.test("runReconcilers() runs a reconciler at its interval, and soon after a change", async (t) => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let notifyChange = (): void => {};
  let runs = 0;
  const reconciler = {
    name: "something",
    everyMs: 60_000,
    onChange: (callback: () => void): void => {
      notifyChange = callback;
    },
    reconcile: async (): Promise<void> => {
      runs++;
      if (runs === 2) throw new Error("not now");
    },
  };
  // No key is watched, so the feed is not used.
  const feed = {} as StoreFeed;
  const { ended } = runReconcilers([reconciler], { feed, clock, log: silentLogger, signal: stop.signal });
  await clock.advance(59_000);
  t.equal(runs, 0, "the first run is after the interval");
  notifyChange();
  notifyChange();
  await clock.advance(1000);
  t.equal(runs, 1, "one run for two changes at once");
  await clock.advance(60_000);
  t.equal(runs, 2);
  await clock.advance(60_000);
  t.equal(runs, 3, "a failed run is repeated at the next interval");
  stop.abort();
  await ended;
  notifyChange();
  await clock.advance(120_000);
  t.equal(runs, 3);
  t.equal(clock.pending, 0);
});
