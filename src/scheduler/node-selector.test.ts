import t from "tap";
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { PodSpec } from "../api/core/pod-spec/schema.ts";
import { type ClusterObjects, createSchedulerFixture } from "../testing/scheduler/scheduler-fixture.ts";

const amounts = { cpu: "2", memory: "4Gi", pods: "3" };

function node(name: string, rest: Partial<Node> = {}): Node {
  const { labels, ...metadata } = rest.metadata ?? {};
  return {
    status: { allocatable: amounts },
    ...rest,
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels }, ...metadata },
  };
}

let created = 0;

function pod(spec: Partial<PodSpec> = {}, metadata: Pod["metadata"] = {}): Pod {
  const name = `pod-${created++}`;
  return {
    metadata: { name, namespace: "default", uid: name, ...metadata },
    spec: { containers: [{ name: "a", image: "web:1" }], ...spec },
  };
}

const requesting = (requests: Readonly<Record<string, string>>): Partial<PodSpec> => ({
  containers: [{ name: "a", image: "web:1", resources: { requests } }],
});

/** The name of the node, or the message without that of preemption. */
async function decide(candidate: Pod, objects: ClusterObjects): Promise<string> {
  const { node: chosen, message } = await createSchedulerFixture(objects).decide(candidate);
  return chosen ?? message.replace(/ preemption:.*$/, "");
}

const none = (reason: string): string => `0/1 nodes are available: 1 ${reason}.`;

t.test("a pod that fits no node gets Kubernetes' message", async (t) => {
  t.equal(await decide(pod(), {}), "no nodes available to schedule pods");
  const tainted = node("n", { spec: { taints: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] } });
  const cordoned = node("n", { spec: { unschedulable: true } });
  const cases: readonly (readonly [Pod, Node, string])[] = [
    [pod(), node("n"), "n"],
    [pod(), cordoned, none("node(s) were unschedulable")],
    [pod({ tolerations: [{ operator: "Exists" }] }), cordoned, "n"],
    [pod(), tainted, none("node(s) had untolerated taint {dedicated: gpu}")],
    [pod({ tolerations: [{ key: "dedicated", value: "gpu", effect: "NoSchedule" }] }), tainted, "n"],
    [pod(), node("n", { spec: { taints: [{ key: "x", effect: "PreferNoSchedule" }] } }), "n"],
    [pod({ nodeSelector: { disk: "ssd" } }), node("n"), none("node(s) didn't match Pod's node affinity/selector")],
    [pod({ nodeSelector: { "kubernetes.io/hostname": "n" } }), node("n"), "n"],
    [pod(requesting({ cpu: "3" })), node("n"), none("Insufficient cpu")],
    [pod(requesting({ cpu: "2", memory: "4Gi" })), node("n"), "n"],
    [pod(requesting({ "example.com/gpu": "1" })), node("n"), none("Insufficient example.com/gpu")],
    [pod(requesting({ "example.com/gpu": "0" })), node("n"), "n"],
  ];
  for (const [candidate, on, expected] of cases) t.equal(await decide(candidate, { nodes: [on] }), expected);
});

t.test("the reasons of several nodes are counted and sorted", async (t) => {
  const nodes = [
    node("a", { spec: { unschedulable: true } }),
    node("b", { status: { allocatable: { ...amounts, cpu: "1" } } }),
    node("c", { status: { allocatable: { ...amounts, cpu: "1" } } }),
  ];
  const { message, rejectedBy } = await createSchedulerFixture({ nodes }).decide(pod(requesting({ cpu: "2" })));
  t.equal(
    message,
    "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. " +
      "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, " +
      "2 No preemption victims found for incoming pod.",
  );
  t.same(rejectedBy, ["NodeResourcesFit", "NodeUnschedulable"]);
});

t.test("node affinity requires one term with all its expressions, and may name nodes", async (t) => {
  const affine = (nodeSelectorTerms: readonly object[]): Pod =>
    pod({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    } as Partial<PodSpec>);
  const host = (value: string) => ({ key: "kubernetes.io/hostname", operator: "In", values: [value] });
  const named = (...values: readonly string[]) => ({ key: "metadata.name", operator: "In", values });
  const nodes = [node("n"), node("m")];
  const cases: readonly (readonly [readonly object[], string | RegExp])[] = [
    [[{ matchExpressions: [host("x")] }, { matchExpressions: [host("n")] }], "n"],
    [[{ matchExpressions: [host("x"), host("n")] }], /2 node\(s\) didn't match Pod's node affinity\/selector/],
    [[{}], /affinity/],
    [[{ matchFields: [named("m")] }], "m"],
    [[{ matchFields: [named("gone")] }], /2 node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]/],
    [[{ matchFields: [named("m"), named("n")] }], "0/2 nodes are available: pod affinity terms conflict."],
  ];
  for (const [terms, expected] of cases) t.match(await decide(affine(terms), { nodes }), expected);
});

t.test("resources and ports of other pods are not free", async (t) => {
  const on = (other: Pod): Pod => ({ ...other, spec: { containers: [], ...other.spec, nodeName: "n" } });
  const nodes = [node("n")];
  const half = on(pod(requesting({ cpu: "1" })));
  t.equal(await decide(pod(requesting({ cpu: "1500m" })), { nodes, pods: [half] }), none("Insufficient cpu"));
  const three = [on(pod()), on(pod()), on(pod())];
  t.equal(await decide(pod(), { nodes, pods: three }), none("Too many pods"));
  const web = (hostIP: string): Pod =>
    pod({ containers: [{ name: "a", image: "web:1", ports: [{ containerPort: 80, hostPort: 80, hostIP }] }] });
  const busy = { nodes, pods: [on(web("192.0.2.1"))] };
  t.equal(await decide(web(""), busy), none("node(s) didn't have free ports for the requested pod ports"));
  t.equal(await decide(web("192.0.2.2"), busy), "n");
});

const inZone = (name: string, zone: string): Node => node(name, { metadata: { labels: { zone } } });
const labelled = (app: string, spec: Partial<PodSpec> = {}, nodeName?: string): Pod =>
  pod({ ...spec, ...(nodeName === undefined ? {} : { nodeName }) }, { labels: { app } });
const term = (app: string) => ({ labelSelector: { matchLabels: { app } }, topologyKey: "zone" });
const near = (app: string): Partial<PodSpec> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app)] } },
});
const away = (app: string): Partial<PodSpec> => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app)] } },
});

t.test("pod affinity and anti-affinity apply in both directions", async (t) => {
  const nodes = [inZone("a", "east"), inZone("b", "west")];
  const at = (candidate: Pod, ...pods: readonly Pod[]): Promise<string> => decide(candidate, { nodes, pods });
  t.equal(await at(labelled("web", near("db")), labelled("db", {}, "a")), "a");
  t.equal(await at(labelled("web", away("db")), labelled("db", {}, "a")), "b");
  t.equal(await at(labelled("db"), labelled("web", away("db"), "a")), "b", "anti-affinity of the existing pod");
  t.match(await at(labelled("web", near("db"))), /2 node\(s\) didn't match pod affinity rules/);
  t.match(await at(labelled("web", near("web"))), /^[ab]$/, "the first pod of a group with affinity to itself");
  const elsewhere = { ...labelled("db", {}, "a"), metadata: { name: "x", namespace: "other", labels: { app: "db" } } };
  t.match(await at(labelled("web", near("db")), elsewhere), /affinity/, "another namespace does not match");
});

t.test("pods spread over zones, without the pods that terminate", async (t) => {
  const constraint = { ...term("web"), maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" } as const;
  const web = (nodeName?: string): Pod => labelled("web", { topologySpreadConstraints: [constraint] }, nodeName);
  const nodes = [inZone("a", "east"), inZone("b", "west")];
  t.equal(await decide(web(), { nodes, pods: [web("a")] }), "b");
  const terminating = (candidate: Pod): Pod => ({
    ...candidate,
    metadata: { ...candidate.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
  });
  const gone = [terminating(web("a")), terminating(web("a")), web("b")];
  t.equal(await decide(web(), { nodes, pods: gone }), "a");
  t.equal(await decide(web(), { nodes: [inZone("a", "east")], pods: [web("a"), web("a")] }), "a", "a single zone");
  t.match(await decide(web(), { nodes: [node("n")] }), /missing required label/);
});

t.test("the selectors of services and controllers spread pods without constraints", async (t) => {
  const zone = (name: string, value: string): Node =>
    node(name, { metadata: { labels: { "topology.kubernetes.io/zone": value } } });
  const nodes = [zone("a", "east"), zone("b", "west")];
  const pods = [labelled("web", {}, "a")];
  const services = [{ metadata: { name: "web", namespace: "default" }, spec: { selector: { app: "web" } } }];
  const { scores } = await createSchedulerFixture({ nodes, pods, services }).decide(labelled("web"));
  t.ok((scores.PodTopologySpread?.[0] ?? 0) < (scores.PodTopologySpread?.[1] ?? 0));
  const without = await createSchedulerFixture({ nodes, pods }).decide(labelled("web"));
  t.equal(without.scores.PodTopologySpread, undefined, "nothing selects the pod");
});

t.test("large clusters are sampled, each time from where the last search ended", async (t) => {
  const nodes = Array.from({ length: 300 }, (_, index) => node(`n${index}`));
  const fixture = createSchedulerFixture({ nodes });
  const first = await fixture.decide(pod());
  t.equal(first.scores.NodeResourcesFit?.length, 144, "48 % of 300");
  const config = { percentageOfNodesToScore: 100 };
  const all = await createSchedulerFixture({ nodes, config }).decide(pod());
  t.equal(all.scores.NodeResourcesFit?.length, 300);
  const seen = new Set<string>();
  for (let count = 0; count < 40; count++) seen.add((await fixture.decide(pod())).node ?? "");
  t.ok([...seen].some((name) => Number(name.slice(1)) > 144));
});
