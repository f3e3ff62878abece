import t from "tap";
import { takeSendableWarnings } from "./warning-limits.ts";

t.test("takeSendableWarnings() takes all short warnings once, and no more than a response has room for", async (t) => {
  t.same(takeSendableWarnings(["a", "b", "a"]), ["a", "b"]);
  let created = 0;
  function* endless(): Generator<string> {
    for (;;) yield `port ${created++} overlaps`;
  }
  const taken = takeSendableWarnings(endless());
  t.ok(taken.join("").length > 4096);
  t.ok(created < 1000, `${created} are created`);
  function* same(): Generator<string> {
    for (;;) yield "a";
  }
  t.same(takeSendableWarnings(same()), ["a"]);
});
