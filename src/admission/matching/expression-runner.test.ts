import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { ExpressionRunner, Pending } from "./expression-runner.ts";

/** Computes for the given time. */
function compute(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

t.test("ExpressionRunner.run() returns the value of a short evaluation at once, and throws its error", async (t) => {
  const runner = new ExpressionRunner();
  t.equal(
    runner.run(() => 1),
    1,
  );
  t.throws(
    () =>
      runner.run(() => {
        throw new Error("wrong");
      }),
    { message: "wrong" },
  );
});

t.test("ExpressionRunner.run() waits for a turn of the event loop after a long evaluation", async (t) => {
  const runner = new ExpressionRunner();
  let turns = 0;
  const counting = (async () => {
    for (; turns < 1000; turns++) await nextTurn();
  })();
  for (let count = 0; count < 3; count++) await runner.run(() => compute(8));
  t.ok(turns >= 2, `${turns} turns`);
  turns = 1000;
  await counting;
});

t.test(
  "ExpressionRunner.run() restarts an evaluation when pending values are settled, nested ones first",
  async (t) => {
    const runner = new ExpressionRunner();
    const values = new Map<string, number>();
    const order: string[] = [];
    const readValue = (name: string, compute: () => number): number => {
      const known = values.get(name);
      if (known !== undefined) return known;
      throw new Pending(() => {
        order.push(name);
        values.set(name, compute());
      });
    };
    const inner = (): number => readValue("inner", () => 2);
    const sum = await runner.run(() => readValue("outer", () => inner() + 1) + readValue("other", () => 10));
    t.equal(sum, 13);
    t.same(order, ["outer", "inner", "outer", "other"]);
  },
);

t.test("ExpressionRunner.run() rejects with the error of a pending value", async (t) => {
  const runner = new ExpressionRunner();
  const fails = (): never => {
    throw new Pending(() => Promise.reject(new Error("not available")));
  };
  await t.rejects(Promise.resolve(runner.run(fails)), { message: "not available" });
});
