import t from "tap";
import { formatList } from "./list-text.ts";

t.test("formatList() shows three items and counts the others", async (t) => {
  t.equal(formatList([]), "");
  t.equal(formatList(["a", "b", "c"]), "a,b,c");
  t.equal(formatList(["a", "b", "c", "d", "e"]), "a,b,c + 2 more...");
});
