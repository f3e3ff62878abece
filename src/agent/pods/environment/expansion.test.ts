import t from "tap";
import { EXPANDED_MAX, expand, TextBudget } from "./expansion.ts";

t.test("expand() resolves references and escapes, and keeps other text", async (t) => {
  const lookup = (name: string) => ({ A: "1", B: "$(A)" })[name];
  for (const [text, expected] of [
    ["$(A)-$(B)", "1-$(A)"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$1"],
    ["$(NONE)", "$(NONE)"],
    ["$(A", "$(A"],
    ["$A $", "$A $"],
    ["", ""],
  ] as const) {
    t.equal(expand(text, lookup), expected, text);
  }
});

t.test("expand() stops at the length of a message to the runtime", async (t) => {
  const value = "x".repeat(2 ** 20);
  const lookup = (name: string) => (name === "A" ? value : undefined);
  t.equal(expand("$(A)".repeat(16), lookup).length, EXPANDED_MAX);
  t.throws(() => expand("$(A)".repeat(17), lookup), {
    message: "the expanded text has more than 16777216 characters",
  });
});

t.test("TextBudget counts texts that are not removed", async (t) => {
  const budget = new TextBudget("the command");
  const text = "x".repeat(EXPANDED_MAX);
  budget.add(text);
  budget.remove(text);
  budget.add(text);
  t.throws(() => budget.add("y"), { message: "the command has more than 16777216 characters" });
});
