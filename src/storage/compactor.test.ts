import t from "tap";
import { silentLogger } from "../std/log/logger.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { Compactor } from "./compactor.ts";
import type { Revision } from "./store.ts";

function setUp(intervalMs: number, retentionMs: number) {
  const clock = new FakeClock();
  const compacted: Revision[] = [];
  let failing = false;
  const compactor = new Compactor({
    clock,
    log: silentLogger,
    intervalMs,
    retentionMs,
    current: () => (clock.monotonic() / 1000) as Revision,
    compact: async (before) => {
      if (failing) throw new Error("disk");
      compacted.push(before);
    },
  });
  const fail = (on: boolean): void => {
    failing = on;
  };
  return { clock, compacted, compactor, fail };
}

t.test("Compactor compacts to the revision that was current one retention time ago", async (t) => {
  const { clock, compacted, compactor } = setUp(10_000, 25_000);
  await clock.advance(29_000);
  t.same(compacted, []);
  await clock.advance(31_000);
  t.same(compacted, [0, 10, 20, 30], "every tick, to the latest that is old enough");
  compactor.close();
  t.equal(clock.pending, 0);
});

t.test("Compactor retries a failed compaction at the next tick", async (t) => {
  const { clock, compacted, compactor, fail } = setUp(10_000, 10_000);
  fail(true);
  await clock.advance(20_000);
  t.same(compacted, []);
  fail(false);
  await clock.advance(10_000);
  t.same(compacted, [20]);
  compactor.close();
  t.equal(clock.pending, 0);
});
