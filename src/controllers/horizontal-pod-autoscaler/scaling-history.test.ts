import t from "tap";
import type { HPAScalingRules } from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import { limitReplicas, ScalingHistory } from "./scaling-history.ts";

const LIMITS = { min: 1, max: 100 };

const plain = [
  [3, 20, LIMITS, 6, "ScaleUpLimit"],
  [1, 20, LIMITS, 4, "ScaleUpLimit"],
  [8, 20, { min: 1, max: 10 }, 10, "TooManyReplicas"],
  [8, 1, { min: 2, max: 10 }, 2, "TooFewReplicas"],
  [8, 5, LIMITS, 5, "DesiredWithinRange"],
] as const;
for (const [current, desired, limits, replicas, reason] of plain) {
  t.test(`without a behavior ${current} replicas go to ${replicas} instead of ${desired}: ${reason}`, async (t) => {
    t.match(limitReplicas(current, desired, limits), { replicas, reason });
  });
}

t.test("a scale down uses the highest recommendation of the window", async (t) => {
  const history = new ScalingHistory();
  history.start(5, 0);
  t.match(history.stabilize(3, 300_000, 60_000), { replicas: 5, reason: "ScaleDownStabilized" });
  t.match(history.stabilize(4, 300_000, 290_000), { replicas: 5 });
  t.match(history.stabilize(2, 300_000, 310_000), { replicas: 4 });
  t.match(history.stabilize(7, 300_000, 320_000), { replicas: 7, reason: "ReadyForNewScale" });
});

t.test("a window for scaling up uses the lowest recommendation", async (t) => {
  const history = new ScalingHistory();
  history.start(2, 0);
  const windows = { up: 60_000, down: 300_000 };
  t.match(history.stabilizeBoth(2, 8, windows, 30_000), { replicas: 2, reason: "ScaleUpStabilized" });
  t.match(history.stabilizeBoth(2, 9, windows, 61_000), { replicas: 8, reason: "ScaleUpStabilized" });
  t.match(history.stabilizeBoth(8, 1, windows, 95_000), { replicas: 8, reason: "ScaleDownStabilized" });
  t.match(history.stabilizeBoth(8, 8, windows, 96_000), { replicas: 8, reason: "ReadyForNewScale" });
});

const percent = (value: number, periodSeconds: number) => ({ type: "Percent", value, periodSeconds });
const pods = (value: number, periodSeconds: number) => ({ type: "Pods", value, periodSeconds });
const policies: readonly (readonly [
  title: string,
  rules: HPAScalingRules,
  current: number,
  desired: number,
  replicas: number,
  reason: string,
])[] = [
  [
    "the larger of two policies",
    { selectPolicy: "Max", policies: [pods(4, 15), percent(100, 15)] },
    3,
    50,
    7,
    "ScaleUpLimit",
  ],
  [
    "the smaller of two policies",
    { selectPolicy: "Min", policies: [pods(4, 15), percent(100, 15)] },
    3,
    50,
    6,
    "ScaleUpLimit",
  ],
  ["percentages round up", { selectPolicy: "Max", policies: [percent(10, 15)] }, 3, 50, 4, "ScaleUpLimit"],
  ["Disabled stops a scale up", { selectPolicy: "Disabled", policies: [pods(4, 15)] }, 3, 50, 3, "ScaleUpLimit"],
  ["pods per period down", { selectPolicy: "Max", policies: [pods(2, 60)] }, 9, 1, 7, "ScaleDownLimit"],
  ["percentages round down", { selectPolicy: "Max", policies: [percent(50, 60)] }, 9, 1, 4, "ScaleDownLimit"],
  ["Disabled stops a scale down", { selectPolicy: "Disabled", policies: [pods(2, 60)] }, 9, 1, 9, "ScaleDownLimit"],
];
for (const [title, rules, current, desired, replicas, reason] of policies) {
  t.test(`policies: ${title}`, async (t) => {
    const both = { up: rules, down: rules };
    t.match(new ScalingHistory().limitByPolicies(current, desired, LIMITS, both, 0), { replicas, reason });
  });
}

t.test("replicas that were added in the period count", async (t) => {
  const rules = { selectPolicy: "Max", policies: [pods(4, 60)] };
  const both = { up: rules, down: rules };
  const history = new ScalingHistory();
  history.recordScaling(2, 5, rules, 0);
  t.match(history.limitByPolicies(5, 20, LIMITS, both, 30_000), { replicas: 6 });
  history.recordScaling(5, 6, rules, 30_000);
  t.match(history.limitByPolicies(6, 20, LIMITS, both, 40_000), { replicas: 6 });
  t.match(history.limitByPolicies(6, 20, LIMITS, both, 70_000), { replicas: 9 });
});
