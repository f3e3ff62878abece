import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { type ClusterObjects, createSchedulerFixture } from "../../testing/scheduler/scheduler-fixture.ts";

const node = (name: string): Node => ({
  metadata: { name, labels: { "kubernetes.io/hostname": name } },
  status: { allocatable: { cpu: "2", memory: "4Gi", pods: "10" } },
});

interface PodOptions {
  readonly priority?: number;
  readonly cpu?: string;
  readonly nodeName?: string;
  readonly start?: string;
  readonly app?: string;
}

function pod(name: string, { priority = 0, cpu = "2", nodeName, start, app }: PodOptions = {}): Pod {
  return {
    metadata: { name, namespace: "default", uid: name, ...(app && { labels: { app } }) },
    spec: {
      priority,
      containers: [{ name: "c", image: "i", resources: { requests: { cpu } } }],
      ...(nodeName && { nodeName }),
    },
    ...(start && { status: { startTime: start } }),
  };
}

async function preempt(candidate: Pod, objects: ClusterObjects) {
  const { node: chosen, nominatedNodeName, victims, message } = await createSchedulerFixture(objects).decide(candidate);
  return { node: chosen, nominatedNodeName, victims, message };
}

const nodes = [node("a"), node("b")];
const high = pod("high", { priority: 1000 });

t.test("the node is chosen whose victims matter least", async (t) => {
  const cases: readonly (readonly [string, readonly Pod[], string])[] = [
    ["the lower priority", [pod("x", { nodeName: "a", priority: 10 }), pod("y", { nodeName: "b", priority: 5 })], "b"],
    [
      "the smaller sum of priorities",
      [
        pod("x", { nodeName: "a", priority: 10, cpu: "1" }),
        pod("x2", { nodeName: "a", priority: 10, cpu: "1" }),
        pod("y", { nodeName: "b", priority: 10 }),
      ],
      "b",
    ],
    [
      "the latest start",
      [
        pod("x", { nodeName: "a", start: "2026-01-01T00:00:00Z" }),
        pod("y", { nodeName: "b", start: "2026-01-02T00:00:00Z" }),
      ],
      "b",
    ],
  ];
  for (const [title, pods, expected] of cases) {
    const { nominatedNodeName, message } = await preempt(high, { nodes, pods });
    t.equal(nominatedNodeName, expected, title);
    t.equal(message, "0/2 nodes are available: 2 Insufficient cpu.", "nothing is said of a preemption");
  }
});

t.test("only as many pods are deleted as necessary, the least important ones", async (t) => {
  const pods = [
    pod("x", { nodeName: "a", cpu: "500m", priority: 3 }),
    pod("y", { nodeName: "a", cpu: "1", priority: 1 }),
    pod("z", { nodeName: "a", cpu: "500m", priority: 2 }),
  ];
  const { victims } = await preempt(pod("p", { priority: 1000, cpu: "1" }), { nodes: [node("a")], pods });
  t.same(victims, ["y"]);
});

t.test("disruption budgets are broken only when there is no other way", async (t) => {
  const budget: PodDisruptionBudget = {
    metadata: { name: "web", namespace: "default" },
    spec: { selector: { matchLabels: { app: "web" } } },
    status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  };
  const web = pod("x", { nodeName: "a", priority: 1, app: "web" });
  const other = pod("y", { nodeName: "b", priority: 10 });
  const budgets = [budget];
  t.same((await preempt(high, { nodes, pods: [web, other], budgets })).victims, ["y"]);
  t.same((await preempt(high, { nodes: [node("a")], pods: [web], budgets })).victims, ["x"]);
});

t.test("a pod does not preempt where that does not help", async (t) => {
  const busy = (priority: number) => ({ nodes: [node("a")], pods: [pod("x", { nodeName: "a", priority })] });
  const none = "0/1 nodes are available: 1 Insufficient cpu. preemption: ";
  const noVictims = `${none}0/1 nodes are available: 1 No preemption victims found for incoming pod.`;
  t.equal((await preempt(high, busy(1000))).message, noVictims, "the same priority");
  const never = { ...high, spec: { containers: [], ...high.spec, preemptionPolicy: "Never" } } as Pod;
  t.equal((await preempt(never, busy(0))).message, `${none}not eligible due to preemptionPolicy=Never.`);
  const large = pod("large", { priority: 1000, cpu: "3" });
  const insufficient = `${none}0/1 nodes are available: 1 Insufficient cpu.`;
  t.equal((await preempt(large, busy(0))).message, insufficient, "more than the whole node");
});

t.test("a pod whose victims terminate on its node waits", async (t) => {
  const victim: Pod = {
    ...pod("x", { nodeName: "a" }),
    metadata: { name: "x", namespace: "default", uid: "x", deletionTimestamp: "2026-01-01T00:00:00Z" },
    status: { conditions: [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }] },
  };
  const waiting: Pod = { ...high, status: { nominatedNodeName: "a" } };
  const { message, nominatedNodeName } = await preempt(waiting, { nodes: [node("a")], pods: [victim] });
  t.match(message, /preemption: not eligible due to a terminating pod on the nominated node\.$/);
  t.equal(nominatedNodeName, undefined, "the nomination stays");
});
