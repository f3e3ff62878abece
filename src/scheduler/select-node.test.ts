import t from "tap";
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { PodSpec } from "../api/core/pod-spec/schema.ts";
import { createNodeInfo } from "./node-info.ts";
import { selectNode } from "./select-node.ts";

const conditions = [{ type: "Ready", status: "True" }] as const;
const allocatable = { cpu: "2", memory: "4Gi", pods: "3" };

function node(name: string, rest: Partial<Node> = {}): Node {
  return {
    metadata: { name, labels: { "kubernetes.io/hostname": name } },
    status: { conditions, allocatable },
    ...rest,
  };
}

function pod(spec: Partial<PodSpec> = {}): Pod {
  return { spec: { containers: [{ name: "a" }], ...spec } };
}

const specRequesting = (cpu: string): Partial<PodSpec> => ({
  containers: [{ name: "a", resources: { requests: { cpu } } }],
});

function reasonFor(candidate: Pod, on: Node, others: readonly Pod[] = []): string {
  const selection = selectNode(candidate, [createNodeInfo(on, others)]);
  return selection.node ?? selection.message;
}

t.test("selectNode() returns Kubernetes' message if no node fits", async (t) => {
  t.same(selectNode(pod(), []), { node: undefined, message: "no nodes available to schedule pods" });
  const cases: readonly (readonly [Pod, Node, string])[] = [
    [pod(), node("n"), "n"],
    [pod(), node("n", { status: { conditions: [{ type: "Ready", status: "Unknown" }] } }), "1 node(s) were not ready"],
    [pod(), node("n", { spec: { unschedulable: true } }), "1 node(s) were unschedulable"],
    [pod({ tolerations: [{ operator: "Exists" }] }), node("n", { spec: { unschedulable: true } }), "n"],
    [
      pod(),
      node("n", { spec: { taints: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] } }),
      "1 node(s) had untolerated taint {dedicated: gpu}",
    ],
    [
      pod({ tolerations: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] }),
      node("n", { spec: { taints: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] } }),
      "n",
    ],
    [pod(), node("n", { spec: { taints: [{ key: "x", effect: "PreferNoSchedule" }] } }), "n"],
    [pod({ nodeSelector: { disk: "ssd" } }), node("n"), "1 node(s) didn't match Pod's node affinity/selector"],
    [pod({ nodeSelector: { "kubernetes.io/hostname": "n" } }), node("n"), "n"],
    [pod(specRequesting("3")), node("n"), "1 Insufficient cpu"],
    [pod(specRequesting("2")), node("n"), "n"],
  ];
  for (const [candidate, on, expected] of cases) {
    t.equal(reasonFor(candidate, on), expected === "n" ? "n" : `0/1 nodes are available: ${expected}.`);
  }
});

t.test("selectNode() requires one node affinity term with all its expressions", async (t) => {
  const podWithNodeAffinity = (nodeSelectorTerms: readonly object[]): Pod =>
    pod({
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
      },
    } as Partial<PodSpec>);
  const host = (value: string) => ({ key: "kubernetes.io/hostname", operator: "In", values: [value] });
  t.equal(
    reasonFor(podWithNodeAffinity([{ matchExpressions: [host("x")] }, { matchExpressions: [host("n")] }]), node("n")),
    "n",
  );
  t.match(reasonFor(podWithNodeAffinity([{ matchExpressions: [host("x"), host("n")] }]), node("n")), /affinity/);
  t.match(reasonFor(podWithNodeAffinity([{}]), node("n")), /affinity/, "an empty term selects nothing");
  t.equal(
    reasonFor(
      podWithNodeAffinity([{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] }]),
      node("n"),
    ),
    "n",
  );
});

t.test("selectNode() subtracts the resources and ports of other pods", async (t) => {
  t.match(reasonFor(pod(specRequesting("1500m")), node("n"), [pod(specRequesting("1"))]), /Insufficient cpu/);
  t.match(reasonFor(pod(), node("n"), [pod(), pod(), pod()]), /Too many pods/);
  const web = (hostIP: string) =>
    pod({ containers: [{ name: "a", ports: [{ containerPort: 80, hostPort: 80, hostIP }] }] });
  t.match(reasonFor(web(""), node("n"), [web("192.0.2.1")]), /free ports/);
  t.equal(reasonFor(web("192.0.2.2"), node("n"), [web("192.0.2.1")]), "n");
});

t.test("selectNode() uses the peak of init containers as the request of the pod", async (t) => {
  const starting = pod({
    containers: [{ name: "a", resources: { requests: { cpu: "500m" } } }],
    initContainers: [
      { name: "s", restartPolicy: "Always", resources: { requests: { cpu: "1" } } },
      { name: "i", resources: { requests: { cpu: "1500m" } } },
    ],
  });
  t.match(reasonFor(starting, node("n")), /Insufficient cpu/, "1 + 1.5 while starting");
});

t.test("selectNode() prefers the node with the most free resources", async (t) => {
  const infos = [createNodeInfo(node("full"), [pod(specRequesting("1500m"))]), createNodeInfo(node("empty"), [])];
  t.same(selectNode(pod(specRequesting("100m")), infos), { node: "empty" });
});

const nodeInZone = (name: string, zone: string): Node =>
  node(name, { metadata: { name, labels: { "kubernetes.io/hostname": name, zone } } });
const podWithLabel = (app: string, spec: Partial<PodSpec> = {}): Pod => ({
  ...pod(spec),
  metadata: { namespace: "default", labels: { app } },
});
const term = (app: string) => ({ labelSelector: { matchLabels: { app } }, topologyKey: "zone" });
const near = (app: string): Partial<PodSpec> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app)] } },
});
const away = (app: string): Partial<PodSpec> => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app)] } },
});

t.test("selectNode() applies pod affinity and anti-affinity in both directions", async (t) => {
  const a = nodeInZone("a", "east");
  const b = nodeInZone("b", "west");
  const at = (candidate: Pod, onA: readonly Pod[]) => {
    const selection = selectNode(candidate, [createNodeInfo(a, onA), createNodeInfo(b, [])]);
    return selection.node ?? selection.message;
  };
  t.equal(at(podWithLabel("web", near("db")), [podWithLabel("db")]), "a");
  t.equal(at(podWithLabel("web", away("db")), [podWithLabel("db")]), "b");
  t.equal(at(podWithLabel("db"), [podWithLabel("web", away("db"))]), "b", "anti-affinity of the existing pod");
  t.match(at(podWithLabel("web", near("db")), []), /2 node\(s\) didn't match pod affinity rules/);
  t.match(at(podWithLabel("web", near("web")), []), /^[ab]$/, "the first pod of a group with affinity to itself");
  const elsewhere = { ...podWithLabel("db"), metadata: { namespace: "other", labels: { app: "db" } } };
  t.match(at(podWithLabel("web", near("db")), [elsewhere]), /affinity/, "another namespace does not match");
});

t.test("selectNode() spreads pods over the topology", async (t) => {
  const constraint = {
    maxSkew: 1,
    topologyKey: "zone",
    whenUnsatisfiable: "DoNotSchedule",
    labelSelector: { matchLabels: { app: "web" } },
  } as const;
  const web = podWithLabel("web", { topologySpreadConstraints: [constraint] });
  const infos = [createNodeInfo(nodeInZone("a", "east"), [web]), createNodeInfo(nodeInZone("b", "west"), [])];
  t.same(selectNode(web, infos), { node: "b" });
  const alone = selectNode(web, [createNodeInfo(nodeInZone("a", "east"), [web, web])]);
  t.same(alone, { node: "a" }, "the skew of a single zone is zero");
  const missing = selectNode(web, [createNodeInfo(node("n"), [])]);
  t.match(missing.node ?? missing.message, /missing required label/);
});
