import t from "tap";
import { builtinScheme } from "./builtin.ts";
import { answersDeleted } from "./deleted-answer.ts";

t.test("answersDeleted() knows who is answered with the object that is gone", async (t) => {
  const kinds = builtinScheme().kinds();
  const answered = kinds.filter(answersDeleted).map(({ kind }) => kind);
  t.equal(answered.length, 11, "and every one of them is served");
  t.ok(answered.includes("Pod"));
  t.notOk(answersDeleted({ group: "apps", kind: "Deployment" }));
});
