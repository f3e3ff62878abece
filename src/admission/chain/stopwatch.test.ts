import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { runSteps, Stopwatch, observe } from "./stopwatch.ts";
import type { DurationObserver } from "./metrics.ts";

/** Steps of which the second returns a promise, with the durations recorded of each and of all. */
function steps(failing?: number) {
  const clock = new FakeClock();
  const notes: string[] = [];
  const noteOf = (name: string): DurationObserver => ({
    admitted: (ms) => void notes.push(`${name} passed ${ms}`),
    rejected: (ms) => void notes.push(`${name} refused ${ms}`),
  });
  const all = [0, 1, 2].map((place) => ({ place, note: noteOf(`${place}`) }));
  const work = () =>
    observe(noteOf("all"), new Stopwatch(clock), (laps) =>
      runSteps(all, 0, laps, ({ place }) => {
        if (place === failing) throw new Error("no");
        return place === 1 ? clock.sleep(10) : undefined;
      }),
    );
  return { clock, notes, work };
}

t.test("runSteps() runs the steps in order, waits for promises and records how long each took", async (t) => {
  const { clock, notes, work } = steps();
  const done = work();
  t.ok(done instanceof Promise);
  t.same(notes, ["0 passed 0"], "the second step returns a promise");
  await clock.advance(10);
  await done;
  t.same(notes, ["0 passed 0", "1 passed 10", "2 passed 0", "all passed 10"]);
});

t.test("runSteps() stops at the first step that rejects the request", async (t) => {
  const atOnce = steps(0);
  t.throws(() => atOnce.work(), { message: "no" });
  t.same(atOnce.notes, ["0 refused 0", "all refused 0"]);
  const later = steps(2);
  const done = later.work();
  const refused = t.rejects(Promise.resolve(done), { message: "no" });
  await later.clock.advance(10);
  await refused;
  t.same(later.notes, ["0 passed 0", "1 passed 10", "2 refused 0", "all refused 10"]);
});
