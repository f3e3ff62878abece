import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { askAll, Laps, noted } from "./stopwatch.ts";
import type { Note } from "./metrics.ts";

/** Steps that take their time, one of them in a promise, and what was noted of each and of all. */
function steps(failing?: number) {
  const clock = new FakeClock();
  const notes: string[] = [];
  const noteOf = (name: string): Note => ({
    passed: (ms) => void notes.push(`${name} passed ${ms}`),
    refused: (ms) => void notes.push(`${name} refused ${ms}`),
  });
  const all = [0, 1, 2].map((place) => ({ place, note: noteOf(`${place}`) }));
  const work = () =>
    noted(noteOf("all"), new Laps(clock), (laps) =>
      askAll(all, 0, laps, ({ place }) => {
        if (place === failing) throw new Error("no");
        return place === 1 ? clock.sleep(10) : undefined;
      }),
    );
  return { clock, notes, work };
}

t.test("askAll() asks in order, waits where it has to, and notes how long each took", async (t) => {
  const { clock, notes, work } = steps();
  const done = work();
  t.ok(done instanceof Promise);
  t.same(notes, ["0 passed 0"], "the second has to be waited for");
  await clock.advance(10);
  await done;
  t.same(notes, ["0 passed 0", "1 passed 10", "2 passed 0", "all passed 10"]);
});

t.test("askAll() ends with the first that refuses", async (t) => {
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
