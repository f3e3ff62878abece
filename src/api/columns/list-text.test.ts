import t from "tap";
import { listText } from "./list-text.ts";

t.test("listText() counts what it does not show", async (t) => {
  t.equal(listText([]), "");
  t.equal(listText(["a", "b", "c"]), "a,b,c");
  t.equal(listText(["a", "b", "c", "d", "e"]), "a,b,c + 2 more...");
});
