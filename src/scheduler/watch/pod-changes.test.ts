import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { nodeChanges, podChanges } from "./pod-changes.ts";

const pod = (spec: Partial<NonNullable<Pod["spec"]>> = {}, metadata: Pod["metadata"] = {}): Pod => ({
  metadata,
  spec: { containers: [], ...spec },
});
const requests = (cpu: string) => ({ containers: [{ name: "c", image: "i", resources: { requests: { cpu } } }] });

t.test("podChanges() names what plugins consider", async (t) => {
  const cases: readonly (readonly [Pod, Pod, readonly string[]])[] = [
    [pod(), pod(), ["UpdatePodOther"]],
    [pod(), pod({}, { labels: { a: "b" } }), ["UpdatePodLabel"]],
    [pod(requests("2")), pod(requests("1")), ["UpdatePodScaleDown"]],
    [pod(requests("1")), pod(requests("2")), ["UpdatePodOther"]],
    [pod({ schedulingGates: [{ name: "g" }] }), pod(), ["UpdatePodSchedulingGatesEliminated"]],
    [
      pod({ schedulingGates: [{ name: "g" }, { name: "h" }] }),
      pod({ schedulingGates: [{ name: "g" }] }),
      ["UpdatePodOther"],
    ],
    [
      pod(),
      pod({ tolerations: [{ operator: "Exists" }] }, { labels: { a: "b" } }),
      ["UpdatePodLabel", "UpdatePodToleration"],
    ],
  ];
  for (const [before, after, expected] of cases) {
    const changes = podChanges(before, after);
    t.same(
      changes.map(({ action }) => action),
      expected,
    );
    t.ok(changes.every(({ resource }) => resource === "UnschedulablePod"));
  }
  t.match(podChanges(pod({ nodeName: "n" }), pod({ nodeName: "n" })), [{ resource: "AssignedPod" }]);
});

t.test("nodeChanges() names what plugins consider, and nothing for a heartbeat", async (t) => {
  const node = (rest: Partial<Node>): Node => ({ metadata: {}, ...rest });
  const ready = (lastHeartbeatTime: string): Node =>
    node({ status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime }] } });
  const cases: readonly (readonly [Node, Node, readonly string[]])[] = [
    [ready("2026-01-01T00:00:00Z"), ready("2026-01-01T00:00:10Z"), []],
    [ready(""), node({ status: { conditions: [{ type: "Ready", status: "False" }] } }), ["UpdateNodeCondition"]],
    [node({}), node({ spec: { unschedulable: true } }), []],
    [node({ spec: { unschedulable: true } }), node({}), ["UpdateNodeTaint"]],
    [node({}), node({ spec: { taints: [{ key: "a", effect: "NoExecute" }] } }), ["UpdateNodeTaint"]],
    [
      node({}),
      node({ metadata: { labels: { a: "b" }, annotations: { c: "d" } } }),
      ["UpdateNodeLabel", "UpdateNodeAnnotation"],
    ],
    [node({}), node({ status: { allocatable: { cpu: "1" } } }), ["UpdateNodeAllocatable"]],
  ];
  for (const [before, after, expected] of cases) {
    t.same(
      nodeChanges(before, after).map(({ action }) => action),
      expected,
    );
  }
});
