import t from "tap";
import type { Toleration } from "../../../api/core/pod-spec/affinity.ts";
import type { Taint } from "../../cache/node-info.ts";
import { findToleration, isTolerated, tolerates } from "./tolerations.ts";

t.test("findToleration() agrees with tolerates() for lists of every length", async (t) => {
  const keys = [undefined, "", "a", "b"];
  const effects = [undefined, "", "NoSchedule", "NoExecute"] as Toleration["effect"][];
  const operators = [undefined, "Equal", "Exists"] as Toleration["operator"][];
  const values = [undefined, "", "v"];
  const tolerations = keys.flatMap((key) =>
    effects.flatMap((effect) =>
      operators.flatMap((operator) => values.map((value) => ({ key, effect, operator, value }) as Toleration)),
    ),
  );
  const taints = ["a", "b"].flatMap((key) =>
    ["NoSchedule", "NoExecute", "PreferNoSchedule"].flatMap((effect) =>
      values.map((value) => ({ key, effect, value }) as Taint),
    ),
  );
  const others = Array.from({ length: 100 }, (_, i) => ({ key: `k${i}`, operator: "Exists" }) as Toleration);
  for (const toleration of tolerations) {
    for (const taint of taints) {
      const expected = tolerates(toleration, taint);
      const text = JSON.stringify([toleration, taint]);
      t.equal(isTolerated([toleration], taint), expected, text);
      const last = { ...toleration };
      const found = findToleration([...others, toleration, last], taint);
      t.equal(found, expected ? toleration : undefined, `${text} of many: the first one`);
    }
  }
  t.equal(isTolerated([], taints[0]!), false);
});
