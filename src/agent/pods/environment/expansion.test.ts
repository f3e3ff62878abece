import t from "tap";
import { expand } from "./expansion.ts";

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
