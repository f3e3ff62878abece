import t from "tap";
import { formatList } from "./list-text.ts";

t.test("listText() counts what it does not show", async (t) => {
  t.equal(formatList([]), "");
  t.equal(formatList(["a", "b", "c"]), "a,b,c");
  t.equal(formatList(["a", "b", "c", "d", "e"]), "a,b,c + 2 more...");
});
