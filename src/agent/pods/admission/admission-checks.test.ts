import t from "tap";
import type { Node } from "../../../api/core/node/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { type AdmissionInput, findAdmissionFailures } from "./admission-checks.ts";
import { PodAdmitter } from "./pod-admitter.ts";
import { selectVictims } from "./preemption.ts";

const node: Node = {
  metadata: { name: "n1", labels: { "kubernetes.io/os": "linux", zone: "a" } },
  status: { allocatable: { cpu: "2", memory: "1Gi", "ephemeral-storage": "1Gi", pods: "3", "hugepages-2Mi": "0" } },
};

function pod(name: string, spec: Partial<PodSpec> = {}, requests: Record<string, string> = {}): Pod {
  const containers = [{ name: "c", resources: { requests } }];
  return { metadata: { name, uid: name }, spec: { containers, ...spec } };
}

function reasons(one: Pod, more: Partial<AdmissionInput> = {}): readonly string[] {
  const base = { others: [], node, pressures: [], allowedSysctls: [], appArmor: false };
  return findAdmissionFailures({ pod: one, ...base, ...more }).map(({ reason, message }) => `${reason}: ${message}`);
}

t.test("findAdmissionFailures() returns failures in Kubernetes' order, with its reasons and messages", async (t) => {
  const port = (hostIP?: string): Partial<PodSpec> => ({
    containers: [{ name: "c", ports: [{ containerPort: 80, hostPort: 80, ...(hostIP && { hostIP }) }] }],
  });
  const affinity: Partial<PodSpec> = {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }],
        },
      },
    },
  };
  const noMatch = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
  const noPort = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  const tainted = { ...node, spec: { taints: [{ key: "k", effect: "NoExecute" as const }] } };
  const short = (name: string, figures: string) =>
    `OutOf${name}: Node didn't have enough resource: ${name}, ${figures}`;
  const table: readonly (readonly [string, Pod, Partial<AdmissionInput>, readonly string[]])[] = [
    ["no requests", pod("p"), {}, []],
    ["node selector", pod("p", { nodeSelector: { zone: "b" } }), {}, [noMatch]],
    ["affinity", pod("p", affinity), {}, [noMatch]],
    [
      "AppArmor last",
      pod("p", { ...affinity, securityContext: { appArmorProfile: { type: "RuntimeDefault" } } }),
      {},
      [noMatch, "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host"],
    ],
    [
      "what the runtime lacks before resources",
      pod("p", affinity, { cpu: "3" }),
      { runtimeProblem: { reason: "SupplementalGroupsPolicyNotSupported", message: "no" } },
      ["SupplementalGroupsPolicyNotSupported: no"],
    ],
    [
      "resources first",
      pod("p", affinity, { cpu: "3" }),
      {},
      [short("cpu", "requested: 3000, used: 0, capacity: 2000"), noMatch],
    ],
    [
      "requests of other pods",
      pod("p", {}, { memory: "1Gi" }),
      { others: [pod("o", {}, { memory: "1Ki" })] },
      [short("memory", "requested: 1073741824, used: 1024, capacity: 1073741824")],
    ],
    [
      "overhead",
      pod("p", { overhead: { cpu: "1" } }, { cpu: "1500m" }),
      {},
      [short("cpu", "requested: 2500, used: 0, capacity: 2000")],
    ],
    [
      "huge pages",
      pod("p", {}, { "hugepages-2Mi": "4Mi" }),
      {},
      [short("hugepages-2Mi", "requested: 4194304, used: 0, capacity: 0")],
    ],
    ["extended resource that the node does not have", pod("p", {}, { "example.com/gpu": "1" }), {}, []],
    [
      "number of pods",
      pod("p"),
      { others: ["a", "b", "c"].map((name) => pod(name)) },
      [short("pods", "requested: 1, used: 3, capacity: 3")],
    ],
    ["port", pod("p", port()), { others: [pod("o", port("192.0.2.1"))] }, [noPort]],
    ["port of another address", pod("p", port("192.0.2.2")), { others: [pod("o", port("192.0.2.1"))] }, []],
    [
      "taint",
      pod("p"),
      { node: tainted },
      ["TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"],
    ],
    ["tolerated taint", pod("p", { tolerations: [{ operator: "Exists" }] }), { node: tainted }, []],
    [
      "operating system",
      pod("p", { os: { name: "windows" }, nodeSelector: { zone: "b" } }),
      {},
      ["PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"],
    ],
    ["pressure", pod("p"), { pressures: ["MemoryPressure"] }, ["Evicted: The node had condition: [MemoryPressure]. "]],
    [
      "memory pressure and a pod that is not BestEffort",
      pod("p", {}, { cpu: "1" }),
      { pressures: ["MemoryPressure"] },
      [],
    ],
    [
      "disk pressure and a pod that is not BestEffort",
      pod("p", {}, { cpu: "1" }),
      { pressures: ["DiskPressure"] },
      ["Evicted: The node had condition: [DiskPressure]. "],
    ],
    ["disk pressure and a critical pod", pod("p", { priority: 2_000_000_000 }), { pressures: ["DiskPressure"] }, []],
  ];
  for (const [what, one, more, expected] of table) t.same(reasons(one, more), expected, what);
});

t.test("selectVictims() selects few pods, and those of the lowest QoS class", async (t) => {
  const critical = pod("p", { priority: 2_000_000_001 });
  const limits = { cpu: "1", memory: "1Mi" };
  const guaranteed = pod("g", { containers: [{ name: "c", resources: { limits, requests: limits } }] });
  const others = [pod("small", {}, { cpu: "300m" }), pod("large", {}, { cpu: "900m" }), guaranteed, pod("free")];
  const names = (quantity: number) =>
    selectVictims(critical, others, [{ resource: "cpu", quantity }]).map(({ metadata }) => metadata?.name);
  t.same(names(200), ["small"]);
  t.same(names(800), ["large"]);
  t.same(names(1200), ["large", "small"]);
  t.same(names(1500), ["large", "g"], "a Guaranteed pod only if the others are not sufficient");
  t.throws(() => names(9000), {
    message: "no set of running pods found to reclaim resources: [(res: cpu, q: 6800), ]",
  });
  const equal = pod("equal", { priority: 2_000_000_001 }, { cpu: "2" });
  t.throws(() => selectVictims(critical, [equal], [{ resource: "cpu", quantity: 1 }]), /no set of running pods/);
});

t.test("PodAdmitter counts the pods that it admitted, and preempts pods for critical ones", async (t) => {
  const pods: Pod[] = [];
  const ended: string[] = [];
  const preempted: string[] = [];
  const admitter = new PodAdmitter({
    node: async () => node,
    pressures: () => [],
    isShuttingDown: () => false,
    pods: () => pods,
    async terminate(uid) {
      ended.push(uid);
      pods.splice(
        pods.findIndex(({ metadata }) => metadata?.uid === uid),
        1,
      );
    },
    events: { recordPodEvent: () => undefined, recordContainerEvent: () => undefined },
    onPreempted: (resource) => preempted.push(resource),
    clock: new FakeClock(),
    allowedSysctls: [],
    appArmor: false,
  });
  const [a, b] = [pod("a", {}, { cpu: "1500m" }), pod("b", {}, { cpu: "1500m" })];
  pods.push(a, b);
  const rejections = await Promise.all([admitter.admit(a), admitter.admit(b)]);
  t.same(
    rejections.map((each) => each?.reason),
    [undefined, "OutOfcpu"],
    "admits the first of two concurrent pods",
  );
  const critical = pod("k", { priority: 2_000_000_000 }, { cpu: "1" });
  pods.push(critical);
  t.equal(await admitter.admit(critical), undefined);
  t.same(ended, ["a"]);
  t.same(preempted, ["cpu"]);
  const resize = (cpu: string) => admitter.resize(pod("k", {}, { cpu }));
  t.same(await resize("64"), {
    reason: "Infeasible",
    message: "Node didn't have enough capacity: cpu, requested: 64000, capacity: 2000",
  });
  const other = pod("o", {}, { cpu: "1" });
  pods.push(other);
  t.equal(await admitter.admit(other), undefined);
  t.match(await resize("1500m"), { reason: "Deferred", message: /cpu, requested: 1500, used: 1000, capacity: 2000$/ });
  t.equal(await resize("900m"), undefined);
});

t.test("PodAdmitter waits for a preempted pod at most 1.5 times its grace period", async (t) => {
  const clock = new FakeClock();
  const victim = pod("v", { terminationGracePeriodSeconds: 20 }, { cpu: "1500m" });
  const critical = pod("k", { priority: 2_000_000_000 }, { cpu: "1" });
  const pods = [victim];
  const events: string[] = [];
  const admitter = new PodAdmitter({
    onPreempted: (resource) => t.fail(`${resource}: the pod has not ended`),
    node: async () => node,
    pressures: () => [],
    isShuttingDown: () => false,
    pods: () => pods,
    terminate: () => new Promise(() => undefined),
    events: { recordPodEvent: (_, __, reason) => void events.push(reason), recordContainerEvent: () => undefined },
    clock,
    allowedSysctls: [],
    appArmor: false,
  });
  t.equal(await admitter.admit(victim), undefined);
  pods.push(critical);
  const admission = admitter.admit(critical);
  await clock.advance(29_000);
  t.same(events, ["Preempting"]);
  await clock.advance(1_000);
  t.equal(await admission, undefined);
  t.same(events, ["Preempting", "ExceededGracePeriod"]);
});
