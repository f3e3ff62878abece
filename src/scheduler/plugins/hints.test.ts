/** Which events may make a pod schedulable, by the plugin that rejected it. */
import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { createSchedulerFixture } from "../../testing/scheduler/scheduler-fixture.ts";
import type { EventAction, EventResource } from "../framework/cluster-event.ts";

const node = (rest: Partial<Node> = {}): Node => ({
  metadata: { name: "n" },
  status: { allocatable: { cpu: "4", memory: "4Gi", pods: "10" } },
  ...rest,
});

function pod(spec: Partial<NonNullable<Pod["spec"]>> = {}, metadata: Pod["metadata"] = {}): Pod {
  const containers = [{ name: "c", image: "i", resources: { requests: { cpu: "1" } } }];
  return { metadata: { name: "p", namespace: "default", uid: "p", ...metadata }, spec: { containers, ...spec } };
}

/** Another pod, which is on a node. */
const other = (spec: Partial<NonNullable<Pod["spec"]>> = {}, metadata: Pod["metadata"] = {}): Pod =>
  pod({ nodeName: "n", ...spec }, { name: "o", uid: "o", ...metadata });

interface Case {
  readonly title: string;
  readonly plugin: string;
  readonly pod?: Pod;
  readonly resource: EventResource;
  readonly action: EventAction;
  readonly before?: ApiObject;
  readonly after?: ApiObject;
  readonly retried: boolean;
}

const cpu = (amount: string): Node => node({ status: { allocatable: { cpu: amount, memory: "4Gi", pods: "10" } } });
const taint = { key: "k", value: "v", effect: "NoSchedule" } as const;
const labels = (values: Readonly<Record<string, string>>): Node => node({ metadata: { name: "n", labels: values } });
const term = { labelSelector: { matchLabels: { app: "web" } }, topologyKey: "zone" };
const near = pod({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
});
const awayAffinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
const away = pod({ affinity: awayAffinity });
const spread = pod(
  { topologySpreadConstraints: [{ ...term, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }] },
  { labels: { app: "web" } },
);
const web = other({}, { labels: { app: "web" } });
const port = (hostPort: number) => ({
  containers: [{ name: "c", image: "i", ports: [{ containerPort: 80, hostPort }] }],
});
const claim = (name: string) => ({ volumes: [{ name: "v", persistentVolumeClaim: { claimName: name } }] });
const directory = { volumes: [{ name: "v", emptyDir: {} }] };
const unassigned = pod({}, { uid: "o", labels: { app: "web" } });
const nominated = (spec: Partial<NonNullable<Pod["spec"]>>): Pod => ({
  ...pod(spec, { uid: "o" }),
  status: { nominatedNodeName: "n" },
});
const claimObject = (name: string): ApiObject => ({ metadata: { name, namespace: "default" } });

const nodeCases: readonly Case[] = (
  [
    ["a large node", "NodeResourcesFit", pod(), "Add", undefined, cpu("1"), true],
    ["a small node", "NodeResourcesFit", pod(), "Add", undefined, cpu("500m"), false],
    ["more CPU", "NodeResourcesFit", pod(), "UpdateNodeAllocatable", cpu("1"), cpu("2"), true],
    ["less CPU", "NodeResourcesFit", pod(), "UpdateNodeAllocatable", cpu("3"), cpu("2"), false],
    ["labels", "NodeResourcesFit", pod(), "UpdateNodeLabel", cpu("3"), cpu("2"), false],
    ["a cordoned node", "NodeUnschedulable", pod(), "Add", undefined, node({ spec: { unschedulable: true } }), false],
    [
      "uncordoned",
      "NodeUnschedulable",
      pod(),
      "UpdateNodeTaint",
      node({ spec: { unschedulable: true } }),
      node(),
      true,
    ],
    [
      "no taint any more",
      "TaintToleration",
      pod(),
      "UpdateNodeTaint",
      node({ spec: { taints: [taint] } }),
      node(),
      true,
    ],
    ["another taint", "TaintToleration", pod(), "UpdateNodeTaint", node(), node({ spec: { taints: [taint] } }), false],
    [
      "the label",
      "NodeAffinity",
      pod({ nodeSelector: { a: "b" } }),
      "UpdateNodeLabel",
      node(),
      labels({ a: "b" }),
      true,
    ],
    [
      "no label",
      "NodeAffinity",
      pod({ nodeSelector: { a: "b" } }),
      "UpdateNodeLabel",
      node(),
      labels({ a: "c" }),
      false,
    ],
    ["a zone", "InterPodAffinity", near, "UpdateNodeLabel", labels({}), labels({ zone: "z" }), true],
    [
      "the same zone",
      "InterPodAffinity",
      near,
      "UpdateNodeLabel",
      labels({ zone: "z" }),
      labels({ zone: "z", a: "b" }),
      false,
    ],
    ["any new node", "InterPodAffinity", away, "Add", undefined, node(), true],
    ["a new domain", "PodTopologySpread", spread, "Add", undefined, labels({ zone: "z" }), true],
    ["no domain", "PodTopologySpread", spread, "Add", undefined, node(), false],
    [
      "another domain",
      "PodTopologySpread",
      spread,
      "UpdateNodeLabel",
      labels({ zone: "y" }),
      labels({ zone: "z" }),
      true,
    ],
    ["a domain less", "PodTopologySpread", spread, "Delete", labels({ zone: "y" }), undefined, true],
    [
      "other taints in a domain",
      "PodTopologySpread",
      spread,
      "UpdateNodeTaint",
      labels({ zone: "z" }),
      { ...labels({ zone: "z" }), spec: { taints: [taint] } },
      true,
    ],
    [
      "cordoned in a domain",
      "PodTopologySpread",
      spread,
      "UpdateNodeTaint",
      labels({ zone: "z" }),
      { ...labels({ zone: "z" }), spec: { unschedulable: true } },
      false,
    ],
  ] as const
).map(([title, plugin, candidate, action, before, after, retried]) => ({
  title: `node: ${title}`,
  plugin,
  pod: candidate,
  resource: "Node",
  action,
  ...(before && { before }),
  ...(after && { after }),
  retried,
}));

const podCases: readonly Case[] = (
  [
    ["gone from its node", "NodeResourcesFit", pod(), "Delete", other(), undefined, true],
    ["that had no node", "NodeResourcesFit", pod(), "Delete", pod({}, { uid: "o" }), undefined, false],
    ["of another port", "NodePorts", pod(port(80)), "Delete", other(port(81)), undefined, false],
    ["of the port", "NodePorts", pod(port(80)), "Delete", other(port(80)), undefined, true],
    ["that attracts", "InterPodAffinity", near, "Add", undefined, web, true],
    ["that does not", "InterPodAffinity", near, "Add", undefined, other(), false],
    ["that got the label", "InterPodAffinity", near, "UpdatePodLabel", other(), web, true],
    ["that repelled", "InterPodAffinity", away, "Delete", web, undefined, true],
    ["that keeps the label", "InterPodAffinity", away, "UpdatePodLabel", web, web, false],
    [
      "with an anti-affinity of its own",
      "InterPodAffinity",
      pod({}, { labels: { app: "web" } }),
      "Delete",
      other({ affinity: awayAffinity }),
      undefined,
      true,
    ],
    ["that counts", "PodTopologySpread", spread, "Delete", web, undefined, true],
    ["that does not count", "PodTopologySpread", spread, "Delete", other(), undefined, false],
    ["that counts, without a node", "PodTopologySpread", spread, "Add", undefined, unassigned, false],
    ["nominated for the port", "NodePorts", pod(port(80)), "Delete", nominated(port(80)), undefined, true],
    [
      "that has no node and the port",
      "NodePorts",
      pod(port(80)),
      "Delete",
      pod(port(80), { uid: "o" }),
      undefined,
      false,
    ],
    ["with the claim", "VolumeRestrictions", pod(claim("c")), "Delete", other(claim("c")), undefined, true],
    ["with another claim", "VolumeRestrictions", pod(claim("c")), "Delete", other(claim("d")), undefined, false],
    ["without volumes", "NodeVolumeLimits", pod(claim("c")), "Delete", other(), undefined, false],
    ["with a claim", "NodeVolumeLimits", pod(claim("c")), "Delete", other(claim("d")), undefined, true],
    ["nominated with a claim", "NodeVolumeLimits", pod(claim("c")), "Delete", nominated(claim("d")), undefined, true],
    ["with another volume", "NodeVolumeLimits", pod(claim("c")), "Delete", other(directory), undefined, false],
    ["gone, for preemption", "DefaultPreemption", pod(), "Delete", other(), undefined, true],
  ] as const
).map(([title, plugin, candidate, action, before, after, retried]) => ({
  title: `pod ${title}`,
  plugin,
  pod: candidate,
  resource: "AssignedPod",
  action,
  ...(before && { before }),
  ...(after && { after }),
  retried,
}));

const tolerant = { tolerations: [{ operator: "Exists" as const }] };
const spreadOverTolerated = {
  topologySpreadConstraints: [
    { ...term, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" as const, nodeTaintsPolicy: "Honor" as const },
  ],
};
const spreadOverAll = {
  topologySpreadConstraints: [{ ...term, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" as const }],
};

const ownCases: readonly Case[] = (
  [
    ["got a toleration", "TaintToleration", "UpdatePodToleration", "p", {}, tolerant, true],
    ["got a toleration, of another pod", "TaintToleration", "UpdatePodToleration", "x", {}, tolerant, false],
    ["tolerates cordoned nodes", "NodeUnschedulable", "UpdatePodToleration", "p", {}, tolerant, true],
    ["got another toleration", "NodeUnschedulable", "UpdatePodToleration", "p", {}, {}, false],
    [
      "got a toleration that domains depend on",
      "PodTopologySpread",
      "UpdatePodToleration",
      "p",
      spreadOverTolerated,
      tolerant,
      true,
    ],
    ["got a toleration of no concern", "PodTopologySpread", "UpdatePodToleration", "p", spreadOverAll, tolerant, false],
    ["lost its gates", "SchedulingGates", "UpdatePodSchedulingGatesEliminated", "p", {}, {}, true],
    ["lost its gates, of another pod", "SchedulingGates", "UpdatePodSchedulingGatesEliminated", "x", {}, {}, false],
    ["requests less", "NodeResourcesFit", "UpdatePodScaleDown", "p", {}, {}, true],
    ["got a label", "InterPodAffinity", "UpdatePodLabel", "p", {}, {}, true],
    ["got a condition", "NodeResourcesFit", "UpdatePodOther", "p", {}, {}, false],
  ] as const
).map(([title, plugin, action, uid, spec, change, retried]) => ({
  title: `the pod ${title}`,
  plugin,
  pod: pod({ ...spec, ...change }),
  resource: "UnschedulablePod",
  action,
  before: pod(spec, { uid }),
  after: pod({ ...spec, ...change }, { uid }),
  retried,
}));

const named = (members: object): ApiObject => ({ metadata: { name: "x" }, ...members });
const driver = (count?: number): ApiObject =>
  named({ spec: { drivers: [{ name: "csi", nodeID: "n", ...(count !== undefined && { allocatable: { count } }) }] } });
const zoned = (zone: string): ApiObject => ({
  metadata: { name: "v", labels: { "topology.kubernetes.io/zone": zone } },
});
const topologies = { allowedTopologies: [{ matchLabelExpressions: [{ key: "zone", values: ["z"] }] }] };
const migrated = {
  metadata: { annotations: { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs" } },
};
const waiting = named({ volumeBindingMode: "WaitForFirstConsumer" });

const volumeCases: readonly Case[] = (
  [
    ["its claim", "VolumeBinding", "PersistentVolumeClaim", "Update", undefined, claimObject("c"), true],
    ["another claim", "VolumeBinding", "PersistentVolumeClaim", "Update", undefined, claimObject("d"), false],
    ["a volume", "VolumeBinding", "PersistentVolume", "Add", undefined, named({}), true],
    ["any new class", "VolumeBinding", "StorageClass", "Add", undefined, named({}), true],
    ["topologies of a class", "VolumeBinding", "StorageClass", "Update", named({}), named(topologies), true],
    ["a class, not its topologies", "VolumeBinding", "StorageClass", "Update", named({}), waiting, false],
    ["a new node's drivers", "VolumeBinding", "CSINode", "Add", undefined, driver(), true],
    ["migrated plugins", "VolumeBinding", "CSINode", "Update", named({}), named(migrated), true],
    ["a limit", "VolumeBinding", "CSINode", "Update", driver(1), driver(2), false],
    ["a new capacity", "VolumeBinding", "CSIStorageCapacity", "Add", undefined, named({}), true],
    [
      "more capacity",
      "VolumeBinding",
      "CSIStorageCapacity",
      "Update",
      named({ capacity: "1Gi" }),
      named({ capacity: "2Gi" }),
      true,
    ],
    [
      "more capacity, but not for one volume",
      "VolumeBinding",
      "CSIStorageCapacity",
      "Update",
      named({ capacity: "1Gi", maximumVolumeSize: "1Gi" }),
      named({ capacity: "2Gi", maximumVolumeSize: "1Gi" }),
      false,
    ],
    ["a capacity, of no concern", "VolumeZone", "CSIStorageCapacity", "Add", undefined, named({}), false],
    ["a class that waits", "VolumeZone", "StorageClass", "Add", undefined, waiting, true],
    ["a class that binds at once", "VolumeZone", "StorageClass", "Add", undefined, named({}), false],
    ["a new volume", "VolumeZone", "PersistentVolume", "Add", undefined, zoned("a"), true],
    ["zones of a volume", "VolumeZone", "PersistentVolume", "Update", zoned("a"), zoned("b"), true],
    ["the order of zones of a volume", "VolumeZone", "PersistentVolume", "Update", zoned("a__b"), zoned("b__a"), false],
    ["a higher limit", "NodeVolumeLimits", "CSINode", "Update", driver(1), driver(2), true],
    ["a first limit", "NodeVolumeLimits", "CSINode", "Update", driver(), driver(1), true],
    ["no limit any more", "NodeVolumeLimits", "CSINode", "Update", driver(1), driver(), false],
    ["detached", "NodeVolumeLimits", "VolumeAttachment", "Delete", named({}), undefined, true],
  ] as const
).map(([title, plugin, resource, action, before, after, retried]) => ({
  title: `changed: ${title}`,
  plugin,
  pod: pod(claim("c")),
  resource,
  action,
  ...(before && { before }),
  ...(after && { after }),
  retried,
}));

t.test("an event retries the pods that it may make schedulable", async (t) => {
  const fixture = createSchedulerFixture({});
  for (const { title, plugin, pod: candidate = pod(), retried, ...event } of [
    ...nodeCases,
    ...podCases,
    ...ownCases,
    ...volumeCases,
  ]) {
    const isRetried = fixture.isInterested(candidate, plugin, { before: undefined, after: undefined, ...event });
    t.equal(isRetried, retried, `${plugin}, ${title}`);
  }
});
