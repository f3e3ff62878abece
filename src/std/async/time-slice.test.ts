import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { systemClock } from "../time/clock.ts";
import { sharedSlice, TimeSlice } from "./time-slice.ts";

function compute(ms: number): void {
  const began = performance.now();
  while (performance.now() - began < ms);
}

t.test("TimeSlice lets the event loop turn after long computations only", async (t) => {
  const slice = new TimeSlice();
  t.equal(slice.yield(), undefined);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  for (let step = 0; step < 5; step++) {
    compute(25);
    await slice.yield();
  }
  clearInterval(timer);
  t.ok(turns >= 4, `${turns} turns`);
});

t.test("a turn of the event loop has one step of all long computations, which take turns", async (t) => {
  let turn = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; turn++) await nextTurn();
  })();
  const steps: { readonly name: string; readonly turn: number }[] = [];
  const run = async (name: string): Promise<void> => {
    const slice = new TimeSlice();
    for (let step = 0; step < 3; step++) {
      await slice.end();
      steps.push({ name, turn });
    }
  };
  await Promise.all(["a", "b", "c"].map(run));
  isOver = true;
  await counting;
  t.same(
    steps.map(({ name }) => name),
    ["a", "b", "c", "a", "b", "c", "a", "b", "c"],
  );
  t.equal(new Set(steps.map(({ turn }) => turn)).size, steps.length, JSON.stringify(steps));
});

t.test("work that starts many times in a turn of the event loop continues in others when it takes long", async (t) => {
  await nextTurn();
  let turns = 0;
  for (let piece = 0; piece < 4; piece++) {
    const turn = sharedSlice.yield(systemClock);
    if (turn !== undefined) turns++;
    await turn;
    compute(25);
  }
  t.equal(turns, 3);
  const clock = new FakeClock();
  for (let piece = 0; piece < 2; piece++) {
    t.equal(sharedSlice.yield(clock), undefined, "simulated time stands still");
    compute(25);
  }
});
