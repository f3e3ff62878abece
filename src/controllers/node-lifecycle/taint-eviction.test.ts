import t from "tap";
import type { Taint } from "../../api/core/node/schema.ts";
import type { Toleration } from "../../api/core/pod-spec/affinity.ts";
import { toleratedMs } from "./taint-eviction.ts";

const GONE: Taint = { key: "gone", effect: "NoExecute" };
const DB: Taint = { key: "for", value: "db", effect: "NoExecute" };

const exists = (key: string, seconds?: number): Toleration => ({
  key,
  operator: "Exists",
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});

t.test("toleratedMs() returns the shortest toleration of all taints", (t) => {
  const cases: readonly (readonly [readonly Toleration[], readonly Taint[], number | undefined])[] = [
    [[], [GONE], 0],
    [[exists("gone")], [GONE], undefined],
    [[exists("gone", 30)], [GONE], 30_000],
    [[exists("gone", -1)], [GONE], 0],
    [[exists("gone", 30)], [GONE, DB], 0],
    [[exists("gone", 30), exists("for", 20)], [GONE, DB], 20_000],
    [[exists("gone", 30), exists("for")], [GONE, DB], 30_000],
    [[{ key: "for", value: "db" }], [DB], undefined],
    [[{ key: "for", value: "web" }], [DB], 0],
    [[{ key: "gone", operator: "Exists", effect: "NoSchedule" }], [GONE], 0],
    [[{ operator: "Exists" }], [GONE, DB], undefined],
  ];
  for (const [tolerations, taints, stay] of cases) {
    t.equal(toleratedMs(tolerations, taints), stay, JSON.stringify({ tolerations, taints }));
  }
  t.end();
});
