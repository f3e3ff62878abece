import t from "tap";
import { runInSlices, runSteps, type Steps } from "./steps.ts";

function* addSteps(count: number, msEach: number): Steps<number> {
  let sum = 0;
  for (let step = 1; step <= count; step++) {
    const began = performance.now();
    while (performance.now() - began < msEach);
    sum += step;
    yield;
  }
  return sum;
}

t.test("runSteps() and runInSlices() return the result of short computations", async (t) => {
  t.equal(runSteps(addSteps(3, 0)), 6);
  t.equal(runInSlices(addSteps(3, 0)), 6);
});

t.test("runInSlices() lets the event loop turn between the steps of a long computation", async (t) => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const result = runInSlices(addSteps(5, 25));
  t.ok(result instanceof Promise);
  t.equal(await result, 15);
  clearInterval(timer);
  t.ok(turns >= 4, `${turns} turns`);
});

t.test("runInSlices() passes on errors of later steps", async (t) => {
  const failing = function* (): Steps<number> {
    yield* addSteps(2, 25);
    throw new RangeError("too long");
  };
  await t.rejects(async () => await runInSlices(failing()), { message: "too long" });
});
