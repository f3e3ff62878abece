import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import type { StoreFeed } from "../../storage/watch/feed.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { runReconcilers } from "./periodic-reconciler.ts";

t.test("keep() does a chore at its pace, and soon after it is told of a change", async (t) => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let tell = (): void => {};
  let runs = 0;
  const chore = {
    name: "something",
    everyMs: 60_000,
    follow: (changed: () => void): void => {
      tell = changed;
    },
    run: async (): Promise<void> => {
      runs++;
      if (runs === 2) throw new Error("not now");
    },
  };
  // No key is looked out for, so that the feed is asked nothing.
  const feed = {} as StoreFeed;
  const { ended } = runReconcilers([chore], { feed, clock, log: silentLogger, signal: stop.signal });
  await clock.advance(59_000);
  t.equal(runs, 0, "what is there has been made");
  tell();
  tell();
  await clock.advance(1000);
  t.equal(runs, 1, "once for what comes together");
  await clock.advance(60_000);
  t.equal(runs, 2);
  await clock.advance(60_000);
  t.equal(runs, 3, "one that fails has its next turn");
  stop.abort();
  await ended;
  tell();
  await clock.advance(120_000);
  t.equal(runs, 3);
  t.equal(clock.pending, 0);
});
