import t from "tap";
import { NodeInfo } from "../../cache/node-info.ts";
import { PodInfo } from "../../cache/pod-info.ts";
import { allocationsOf } from "./allocation.ts";
import { compileStrategy, type ScoringStrategy } from "./scoring-strategy.ts";

/** The score of a node of 4 cores and 8 GiB for a pod of one core and 1 GiB. */
function score(strategy: ScoringStrategy, used: Readonly<Record<string, string>> = {}): number {
  const node = new NodeInfo("n");
  node.setNode({ metadata: { name: "n" }, status: { allocatable: { cpu: "4", memory: "8Gi", pods: "9" } } });
  const podOf = (uid: string, requests: Readonly<Record<string, string>>): PodInfo =>
    new PodInfo({
      metadata: { name: uid, uid },
      spec: { containers: [{ name: "c", image: "i", resources: { requests } }] },
    });
  if (Object.keys(used).length > 0) node.addPod(podOf("other", used));
  const compiled = compileStrategy(strategy);
  return compiled.score(allocationsOf(podOf("p", { cpu: "1", memory: "1Gi" }), compiled.resources, false), node);
}

t.test("each strategy scores as Kubernetes does", async (t) => {
  const busy = { cpu: "1", memory: "2Gi" };
  const cpu = [{ name: "cpu", weight: 1 }];
  const shape = [{ score: 0 }, { utilization: 50, score: 10 }, { utilization: 100, score: 3 }];
  const ratio: ScoringStrategy = {
    type: "RequestedToCapacityRatio",
    resources: [{ name: "cpu", weight: 3 }, { name: "memory" }],
    requestedToCapacityRatio: { shape },
  };
  t.equal(score({}), 81, "75 for CPU and 87 for memory");
  t.equal(score({ type: "MostAllocated", resources: cpu }, busy), 50);
  t.equal(score({ type: "LeastAllocated", resources: cpu }, { cpu: "4", memory: "1" }), 0, "more than the node has");
  t.equal(score({ resources: [{ name: "cpu" }, { name: "memory", weight: 3 }] }), 84, "no weight means 1");
  t.equal(score(ratio, busy), 94, "100 for CPU, 74 for memory");
  t.equal(score(ratio), 44);
  t.equal(score({ resources: [{ name: "example.com/gpu", weight: 1 }] }), 0, "the pod requests none");
});
