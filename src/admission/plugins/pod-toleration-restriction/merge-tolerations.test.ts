import t from "tap";
import { mergeTolerations } from "./merge-tolerations.ts";

t.test("mergeTolerations() keeps tolerations that no other one is a superset of, and the first of equal ones", (t) => {
  const exists = { key: "a", operator: "Exists" as const };
  const equal = { key: "a", operator: "Equal" as const, value: "b" };
  const all = { operator: "Exists" as const };
  const until = (tolerationSeconds: number) => ({ ...exists, effect: "NoExecute" as const, tolerationSeconds });
  t.same(mergeTolerations([equal], [exists]), [exists]);
  t.same(mergeTolerations([exists], [exists]), [exists]);
  t.same(mergeTolerations([exists, equal], [all]), [all]);
  t.same(mergeTolerations([until(5)], [until(9)]), [until(9)]);
  t.same(mergeTolerations([equal], [{ ...equal, value: "c" }]), [equal, { ...equal, value: "c" }]);
  t.end();
});
