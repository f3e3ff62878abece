import t from "tap";
import { FakeClock } from "./fake-clock.ts";

t.test("FakeClock.advance() runs timers at their times, in order", async (t) => {
  const clock = new FakeClock(1000);
  const seen: [string, number][] = [];
  clock.timer(20, () => seen.push(["b", clock.now()]));
  clock.timer(10, () => seen.push(["a", clock.now()]));
  clock.timer(20, () => seen.push(["c", clock.now()]));
  clock.timer(15, () => seen.push(["never", 0])).cancel();
  t.equal(clock.untilNext, 10);
  await clock.advance(19);
  t.same(seen, [["a", 1010]]);
  await clock.advance(1);
  t.same(seen.slice(1), [
    ["b", 1020],
    ["c", 1020],
  ]);
  t.equal(clock.now(), 1020);
  t.equal(clock.monotonic(), 20);
  t.equal(clock.pending, 0);
  t.equal(clock.untilNext, undefined);
});

t.test("FakeClock.advance() lets a loop of sleeps make every iteration", async (t) => {
  const clock = new FakeClock();
  const controller = new AbortController();
  let turns = 0;
  const loop = (async () => {
    for (;;) {
      await clock.sleep(1000, controller.signal);
      turns++;
    }
  })();
  await clock.advance(5500);
  t.equal(turns, 5);
  controller.abort(new Error("enough"));
  await t.rejects(loop, { message: "enough" });
  t.equal(clock.pending, 0, "an aborted sleep leaves no timer");
});
