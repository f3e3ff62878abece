import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { createResourceMetrics } from "../resource-metrics.ts";
import { type MergedHint, mergeHints, type NumaNodes } from "./merge-hints.ts";
import { isNarrower, iterateMasks, maskOf, nodesOf } from "./numa-mask.ts";
import { AdmissionError, type HintProvider, type ResourceHints, type TopologyHint } from "./topology-hint.ts";
import { TopologyManager, type TopologyPolicy, type TopologyScope, toRejection } from "./topology-manager.ts";
import { parseTopologyOptions } from "./topology-options.ts";

const gates = { alpha: false, beta: true };
const twoNodes: NumaNodes = { nodes: [0, 1], distances: new Map() };
const preferred = (...nodes: readonly number[]): TopologyHint => ({ affinity: maskOf(nodes), isPreferred: true });
const possible = (...nodes: readonly number[]): TopologyHint => ({ affinity: maskOf(nodes), isPreferred: false });

const show = ({ affinity, isPreferred }: MergedHint): string =>
  `${nodesOf(affinity).join("")}${isPreferred ? " preferred" : ""}`;

t.test("masks: order, subsets, limits", async (t) => {
  t.same([...iterateMasks([0, 1, 2])].map(nodesOf), [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]);
  t.equal(isNarrower(maskOf([3]), maskOf([0, 1])), true);
  t.equal(isNarrower(maskOf([1]), maskOf([0])), false);
  t.throws(() => maskOf([64]), /bit number must be in range 0-63/);
});

t.test("hints of several resources are merged to the narrowest that all prefer", async (t) => {
  const rows: readonly (readonly [readonly (readonly TopologyHint[])[], string])[] = [
    [[[preferred(0), preferred(1), possible(0, 1)]], "0 preferred"],
    [[[preferred(0)], [preferred(0), preferred(1)]], "0 preferred"],
    [[[preferred(0)], [preferred(1)]], "01"],
    [[[preferred(0, 1)], [preferred(1), possible(0, 1)]], "01"],
    [
      [
        [preferred(0), possible(0, 1)],
        [preferred(1), possible(0, 1)],
      ],
      "0",
    ],
    [[[{ affinity: undefined, isPreferred: false }], [preferred(1)]], "1"],
    [[[{ affinity: undefined, isPreferred: true }], [preferred(1)]], "1 preferred"],
    [[[preferred(0), possible(0, 1)], [possible(0, 1)]], "01"],
    [[], "01 preferred"],
  ];
  for (const [hints, expected] of rows) t.equal(show(mergeHints(hints, twoNodes, false)), expected);
});

t.test("without a preferred merge, the number of nodes is the closest to what the resources need", async (t) => {
  const nodes = { nodes: [0, 1, 2, 3], distances: new Map() };
  const wide = [possible(0, 1), possible(2, 3), possible(0, 1, 2, 3)];
  const narrow = [possible(0), possible(1), possible(2), possible(3), possible(0, 1), possible(0, 1, 2, 3)];
  t.equal(show(mergeHints([wide, narrow], nodes, false)), "01");
});

t.test("the closest nodes win with as many nodes", async (t) => {
  const distances = new Map([
    [0, [10, 40, 40, 11]],
    [1, [40, 10, 40, 40]],
    [2, [40, 40, 10, 40]],
    [3, [11, 40, 40, 10]],
  ]);
  const nodes = { nodes: [0, 1, 2, 3], distances };
  const pairs = [preferred(0, 1), preferred(0, 2), preferred(0, 3), preferred(1, 2)];
  t.equal(show(mergeHints([pairs], nodes, false)), "01 preferred");
  t.equal(show(mergeHints([pairs], nodes, true)), "03 preferred");
  t.equal(show(mergeHints([[preferred(1, 2), preferred(0, 2)]], nodes, true)), "02 preferred");
});

interface Setup {
  readonly policy: TopologyPolicy;
  readonly scope?: TopologyScope;
  readonly hints: ResourceHints;
  readonly allocate?: () => void;
}

const pod: Pod = {
  metadata: { name: "p", uid: "u" },
  spec: { initContainers: [{ name: "i" }], containers: [{ name: "a" }, { name: "b" }] },
};

async function admit({ policy, scope = "container", hints, allocate }: Setup) {
  const registry = new MetricRegistry();
  const manager = new TopologyManager({
    policy,
    scope,
    options: parseTopologyOptions({}, gates),
    numa: twoNodes,
    metrics: createResourceMetrics(registry).topology,
    clock: new FakeClock(),
  });
  const allocated: string[] = [];
  const provider: HintProvider = {
    getTopologyHints: () => hints,
    getPodTopologyHints: () => hints,
    allocate(_pod, { name }) {
      const { affinity } = manager.getAffinity("u", name);
      allocated.push(`${name}:${affinity === undefined ? "any" : nodesOf(affinity).join("")}`);
      allocate?.();
    },
  };
  manager.addProvider(provider);
  const rejection = await manager.admit(pod).then(() => undefined, toRejection);
  const metrics = formatMetrics([registry], "prometheus");
  const read = (name: string): number => Number(new RegExp(`^kubelet_${name} (\\S+)$`, "m").exec(metrics)?.[1] ?? 0);
  return { allocated, rejection, read };
}

const affinityError = {
  reason: "TopologyAffinityError",
  message: "Resources cannot be allocated with Topology locality",
};

t.test("each policy admits what it allows", async (t) => {
  const only: ResourceHints = { cpu: [preferred(1)] };
  const wide: ResourceHints = { cpu: [possible(0, 1)] };
  const all: ResourceHints = { cpu: [preferred(0, 1)] };
  t.same((await admit({ policy: "none", hints: only })).allocated, ["i:any", "a:any", "b:any"]);
  t.same((await admit({ policy: "best-effort", hints: only })).allocated, ["i:1", "a:1", "b:1"]);
  t.same((await admit({ policy: "best-effort", hints: wide })).allocated, ["i:01", "a:01", "b:01"]);
  t.same((await admit({ policy: "restricted", hints: wide })).rejection, affinityError);
  t.same((await admit({ policy: "restricted", hints: all })).allocated, ["i:01", "a:01", "b:01"]);
  t.same((await admit({ policy: "single-numa-node", hints: all })).rejection, affinityError);
  t.same((await admit({ policy: "single-numa-node", hints: only })).allocated, ["i:1", "a:1", "b:1"]);
  t.same((await admit({ policy: "single-numa-node", hints: {} })).allocated, ["i:any", "a:any", "b:any"]);
  t.same((await admit({ policy: "restricted", hints: { cpu: [] } })).rejection, affinityError);
  t.same((await admit({ policy: "restricted", scope: "pod", hints: wide })).rejection, affinityError);
});

t.test("errors of a provider reject the pod with their reason, or as unexpected", async (t) => {
  const fail = (error: Error) => () => {
    throw error;
  };
  const typed = await admit({
    policy: "none",
    hints: {},
    allocate: fail(new AdmissionError("SMTAlignmentError", "odd")),
  });
  t.same(typed.rejection, { reason: "SMTAlignmentError", message: "odd" });
  t.equal(typed.read("topology_manager_admission_errors_total"), 0, "without alignment");
  const unexpected = await admit({ policy: "restricted", hints: {}, allocate: fail(new Error("no CPU")) });
  t.same(unexpected.rejection, {
    reason: "UnexpectedAdmissionError",
    message: "Allocate failed due to no CPU, which is unexpected",
  });
  t.equal(unexpected.read("topology_manager_admission_errors_total"), 1);
  t.equal(unexpected.read("topology_manager_admission_requests_total"), 1);
  t.equal(unexpected.read("topology_manager_admission_duration_ms_count"), 1);
});

t.test("options are accepted by stage, and limit the number of nodes", async (t) => {
  const parse = (options: Record<string, string>, beta = true) => parseTopologyOptions(options, { alpha: false, beta });
  t.same(parse({ "prefer-closest-numa-nodes": "true" }, false), { prefersClosest: true, nodesMax: 8 });
  t.same(parse({ "max-allowable-numa-nodes": "16" }), { prefersClosest: false, nodesMax: 16 });
  t.throws(() => parse({ nonsense: "1" }), /unknown Topology Manager Policy option: "nonsense"/);
  t.throws(
    () => parse({ "max-allowable-numa-nodes": "16" }, false),
    /beta-level options not enabled, but option "max-allowable-numa-nodes" provided/,
  );
  t.throws(() => parse({ "max-allowable-numa-nodes": "7" }), /should not be less than 8/);
  t.throws(() => parse({ "max-allowable-numa-nodes": "x" }), /unable to convert policy option to integer/);
  t.throws(() => parse({ "prefer-closest-numa-nodes": "yes" }), /strconv.ParseBool: parsing "yes": invalid syntax/);
  const open = (policy: TopologyPolicy, nodesMax: number) =>
    new TopologyManager({
      policy,
      scope: "container",
      options: { prefersClosest: false, nodesMax },
      numa: { nodes: [0, 1, 2, 3, 4, 5, 6, 7, 8], distances: new Map() },
      metrics: createResourceMetrics(new MetricRegistry()).topology,
      clock: new FakeClock(),
    });
  t.throws(() => open("restricted", 8), /unsupported on machines with more than 8 NUMA Nodes/);
  t.ok(open("restricted", 9));
  t.ok(open("none", 8));
});
