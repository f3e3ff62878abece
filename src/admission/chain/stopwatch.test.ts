import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { DurationObserver } from "./metrics.ts";
import { observe, runSteps, Stopwatch } from "./stopwatch.ts";

/** Steps of which the second returns a promise, with the durations recorded of each and of all. */
function steps(failing?: number) {
  const clock = new FakeClock();
  const records: string[] = [];
  const observerOf = (name: string): DurationObserver => ({
    admitted: (ms) => void records.push(`${name} admitted ${ms}`),
    rejected: (ms) => void records.push(`${name} rejected ${ms}`),
  });
  const all = [0, 1, 2].map((index) => ({ index, observer: observerOf(`${index}`) }));
  const work = () =>
    observe(observerOf("all"), new Stopwatch(clock), (stopwatch) =>
      runSteps(all, 0, stopwatch, ({ index }) => {
        if (index === failing) throw new Error("no");
        return index === 1 ? clock.sleep(10) : undefined;
      }),
    );
  return { clock, records, work };
}

t.test("runSteps() runs the steps in order, waits for promises and records how long each took", async (t) => {
  const { clock, records, work } = steps();
  const done = work();
  t.ok(done instanceof Promise);
  t.same(records, ["0 admitted 0"], "the second step returns a promise");
  await clock.advance(10);
  await done;
  t.same(records, ["0 admitted 0", "1 admitted 10", "2 admitted 0", "all admitted 10"]);
});

t.test("runSteps() stops at the first step that rejects the request", async (t) => {
  const atOnce = steps(0);
  t.throws(() => atOnce.work(), { message: "no" });
  t.same(atOnce.records, ["0 rejected 0", "all rejected 0"]);
  const later = steps(2);
  const done = later.work();
  const rejected = t.rejects(Promise.resolve(done), { message: "no" });
  await later.clock.advance(10);
  await rejected;
  t.same(later.records, ["0 admitted 0", "1 admitted 10", "2 rejected 0", "all rejected 10"]);
});
