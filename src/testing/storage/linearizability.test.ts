import t from "tap";
import { isLinearizable, type SequentialModel } from "./linearizability.ts";

type Input = { readonly write: string } | "read";

const register: SequentialModel<Input, string> = {
  initial: "0",
  step(state, input, output) {
    if (input !== "read") return input.write;
    return output === state ? state : undefined;
  },
};

type Row = readonly [called: number, returned: number, input: Input, output: string | undefined];
const check = (...rows: readonly Row[]): boolean =>
  isLinearizable(
    rows.map(([called, returned, input, output]) => ({ called, returned, input, output })),
    register,
  );

t.test("isLinearizable() accepts histories that some order explains, and no others", async (t) => {
  t.ok(check([0, 10, { write: "1" }, "ok"], [1, 9, "read", "0"], [2, 8, "read", "1"]), "a read on each side");
  t.notOk(check([0, 10, { write: "1" }, "ok"], [1, 2, "read", "1"], [3, 4, "read", "0"]), "back to the former value");
  t.notOk(check([0, 1, { write: "1" }, "ok"], [2, 3, "read", "0"]), "a stale read");
  t.notOk(check([0, 1, "read", "1"], [2, 3, { write: "1" }, "ok"]), "a read of the future");
  t.ok(check([0, 1, { write: "1" }, undefined], [5, 6, "read", "0"], [7, 8, "read", "1"]), "a late write");
  t.ok(check([0, 1, { write: "1" }, undefined], [5, 6, "read", "0"]), "a write that never took effect");
  t.notOk(check([0, 1, { write: "1" }, undefined], [5, 6, "read", "1"], [7, 8, "read", "0"]), "a lost write");
});

t.test("isLinearizable() decides long histories in little time", async (t) => {
  const rows: Row[] = [];
  for (let n = 0; n < 1000; n++) {
    rows.push([4 * n, 4 * n + 6, { write: String(n) }, n % 50 === 0 ? undefined : "ok"]);
    if (n % 50 !== 0) rows.push([4 * n + 7, 4 * n + 8, "read", String(n + 1)]);
  }
  t.notOk(check(...rows.slice(0, 200), [1e6, 1e6 + 1, "read", "none"]));
  t.ok(check(...Array.from({ length: 1000 }, (_, n): Row => [n, n + 3, { write: String(n) }, "ok"])));
});
