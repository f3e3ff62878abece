import t from "tap";
import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import type { DaemonSet, DaemonSetSpec, DaemonSetStatus } from "../../api/apps/daemon-set/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node, Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { alreadyExists, forbidden } from "../../api/status.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { revisionData } from "../workload/controller-history.ts";
import { targetNodeOf } from "./daemon-pods.ts";
import { runDaemonSetController } from "./daemon-set-controller.ts";

const NOW = new Date(START).toISOString();
const template = (image: string) => ({
  metadata: { labels: { app: "ds" } },
  spec: { containers: [{ name: "c", image }] },
});

function daemonSet(spec: Partial<DaemonSetSpec> = {}, more: Partial<DaemonSet> = {}): DaemonSet {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "ds", namespace: "ns", uid: "ds-uid", generation: 1 },
    spec: {
      selector: { matchLabels: { app: "ds" } },
      template: template("img:1"),
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    ...more,
  };
}

const controller = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  name: "ds",
  uid: "ds-uid",
  controller: true,
  blockOwnerDeletion: true,
};

function revision(hash: string, image: string, number: number): ControllerRevision {
  const labels = { app: "ds", "controller-revision-hash": hash };
  return {
    metadata: { name: `ds-${hash}`, namespace: "ns", uid: hash, labels, ownerReferences: [controller] },
    data: revisionData(template(image)),
    revision: number,
  };
}

function node(name: string, taints: readonly Taint[] = [], labels: Readonly<Record<string, string>> = {}): Node {
  return { metadata: { name, labels }, spec: { taints } };
}

interface PodState {
  readonly hash?: string;
  readonly phase?: "Failed" | "Running" | "Succeeded";
  readonly ready?: boolean;
  readonly deleted?: boolean;
  readonly orphan?: boolean;
}

function pod(name: string, on: string, { hash = "a", phase = "Running", ready = true, ...more }: PodState = {}): Pod {
  return {
    metadata: {
      name,
      namespace: "ns",
      uid: name,
      creationTimestamp: NOW,
      labels: { app: "ds", "controller-revision-hash": hash },
      ...(more.orphan === true ? {} : { ownerReferences: [controller] }),
      ...(more.deleted === true ? { deletionTimestamp: NOW } : {}),
    },
    spec: { nodeName: on, containers: [] },
    status: {
      phase,
      conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: NOW }],
    },
  };
}

/** Pods by the nodes that they are for, the status by its counters. */
function show({ verb, kind, object }: Write): string {
  if (kind === nodeKind) return "node";
  if (kind.kind === "Event") {
    const { reason, message } = object as { readonly reason?: string; readonly message?: string };
    return `event ${reason} ${message}`;
  }
  if (kind.kind === "Pod" && verb === "create") return `create pod on ${targetNodeOf(object as Pod)}`;
  if (verb === "status") {
    const { status } = object as DaemonSet;
    const { desiredNumberScheduled, currentNumberScheduled, updatedNumberScheduled, numberAvailable } = status ?? {};
    return `status ${[desiredNumberScheduled, currentNumberScheduled, updatedNumberScheduled, numberAvailable]}`;
  }
  const number =
    kind.kind === "ControllerRevision" && verb !== "delete" ? ` ${(object as ControllerRevision).revision}` : "";
  return `${verb} ${kind.singular} ${object.metadata?.name}${number}`;
}

interface Case {
  readonly title: string;
  readonly daemonSet?: DaemonSet;
  readonly revisions?: readonly ControllerRevision[];
  readonly nodes?: readonly Node[];
  readonly pods?: readonly Pod[];
  readonly options?: SyncOnceOptions;
  readonly writes: readonly string[];
}

const current = revision("a", "img:1", 2);
const previous = revision("b", "img:0", 1);
const surge = { updateStrategy: { type: "RollingUpdate" as const, rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } };
const old = { hash: "b" };
const noExecute = { key: "k", value: "v", effect: "NoExecute" as const };
const noSchedule = { key: "k", value: "v", effect: "NoSchedule" as const };

const cases: readonly Case[] = [
  {
    title: "creates the revision, and a pod on each node that fits",
    revisions: [],
    nodes: [
      node("n1"),
      node("n2", [noSchedule]),
      node("n3", [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }]),
    ],
    writes: [
      "create controllerrevision ds-696867bc77 1",
      "create pod on n1",
      "create pod on n3",
      "event SuccessfulCreate Created pod: ds-1",
      "event SuccessfulCreate Created pod: ds-2",
      "status 2,0,0,0",
    ],
  },
  {
    title: "numbers the revision of an earlier template again",
    revisions: [revision("a", "img:1", 1), revision("b", "img:0", 2)],
    nodes: [],
    writes: ["update controllerrevision ds-a 3", "status 0,0,0,0"],
  },
  {
    title: "merges revisions of the same template and relabels their pods",
    revisions: [revision("a", "img:1", 1), revision("c", "img:1", 2)],
    nodes: [node("n1")],
    pods: [pod("p1", "n1")],
    writes: ["patch pod p1", "delete controllerrevision ds-a"],
  },
  {
    title: "counts a collision when the name belongs to another template",
    revisions: [{ ...previous, metadata: { ...previous.metadata, name: "ds-696867bc77" } }],
    options: {
      fail: (write) => {
        if (!write.startsWith("create controllerrevision")) return;
        throw alreadyExists({ group: "apps", resource: "controllerrevisions", name: "ds-696867bc77" });
      },
    },
    writes: ["create controllerrevision ds-696867bc77 2", "status 0,0,,"],
  },
  {
    title: "deletes pods from nodes that must not run them, and leaves those that may stay",
    nodes: [node("n1", [noExecute]), node("n2", [noSchedule])],
    pods: [pod("p1", "n1"), pod("p2", "n2")],
    writes: ["delete pod p1", "event SuccessfulDelete Deleted pod: p1", "status 0,0,0,0"],
  },
  {
    title: "deletes pods that wait for a node that is gone",
    nodes: [],
    pods: [
      {
        ...pod("p1", "n1"),
        spec: {
          containers: [],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] }],
              },
            },
          },
        },
      },
      pod("p2", "n2"),
    ],
    writes: ["delete pod p1", "event SuccessfulDelete Deleted pod: p1", "status 0,0,0,0"],
  },
  {
    title: "deletes all but the oldest of several pods on a node",
    nodes: [node("n1")],
    pods: [pod("p1", "n1"), pod("p2", "n1")],
    writes: ["delete pod p2", "event SuccessfulDelete Deleted pod: p2", "status 1,1,1,1"],
  },
  {
    title: "replaces failed and succeeded pods with an event each",
    nodes: [node("n1"), node("n2")],
    pods: [pod("p1", "n1", { phase: "Failed", ready: false }), pod("p2", "n2", { phase: "Succeeded", ready: false })],
    writes: [
      "delete pod p1",
      "delete pod p2",
      "event FailedDaemonPod Found failed daemon pod ns/p1 on node n1, will try to kill it",
      "event SucceededDaemonPod Found succeeded daemon pod ns/p2 on node n2, will try to delete it",
      "event SuccessfulDelete Deleted pod: p1",
      "event SuccessfulDelete Deleted pod: p2",
      "status 2,2,2,0",
    ],
  },
  {
    title: "creates the next pod when a deleted one has ended, before it is gone",
    nodes: [node("n1")],
    pods: [pod("p1", "n1", { phase: "Failed", ready: false, deleted: true })],
    writes: ["create pod on n1", "event SuccessfulCreate Created pod: ds-1", "status 1,0,0,0"],
  },
  {
    title: "waits for a deleted pod that runs",
    nodes: [node("n1")],
    pods: [pod("p1", "n1", { deleted: true })],
    writes: ["status 1,1,1,1"],
  },
  {
    title: "adopts orphans that match",
    nodes: [node("n1")],
    pods: [pod("p1", "n1", { orphan: true })],
    daemonSet: daemonSet(),
    writes: ["patch pod p1", "status 1,1,1,1"],
  },
  {
    title: "deletes as many old pods as may be unavailable",
    revisions: [current, previous],
    nodes: [node("n1"), node("n2"), node("n3")],
    pods: [pod("p1", "n1", old), pod("p2", "n2", old), pod("p3", "n3", old)],
    writes: ["delete pod p1", "event SuccessfulDelete Deleted pod: p1", "status 3,3,0,3"],
  },
  {
    title: "deletes no old pod while a new one is not available, but all old ones that are not",
    revisions: [current, previous],
    nodes: [node("n1"), node("n2"), node("n3")],
    pods: [pod("p1", "n1", { ready: false }), pod("p2", "n2", old), pod("p3", "n3", { ...old, ready: false })],
    writes: ["delete pod p3", "event SuccessfulDelete Deleted pod: p3", "status 3,3,1,1"],
  },
  {
    title: "OnDelete leaves old pods",
    daemonSet: daemonSet({ updateStrategy: { type: "OnDelete" } }),
    revisions: [current, previous],
    nodes: [node("n1")],
    pods: [pod("p1", "n1", old)],
    writes: ["status 1,1,0,1"],
  },
  {
    title: "surge creates a pod beside an old one, one at a time",
    daemonSet: daemonSet(surge),
    revisions: [current, previous],
    nodes: [node("n1"), node("n2")],
    pods: [pod("p1", "n1", old), pod("p2", "n2", old)],
    writes: ["create pod on n1", "event SuccessfulCreate Created pod: ds-1", "status 2,2,0,2"],
  },
  {
    title: "surge keeps the old pod until the new one is available",
    daemonSet: daemonSet(surge),
    revisions: [current, previous],
    nodes: [node("n1")],
    pods: [pod("p1", "n1", old), pod("p2", "n1", { ready: false })],
    writes: ["status 1,1,0,1"],
  },
  {
    title: "surge deletes the old pod when the new one is available",
    daemonSet: daemonSet(surge),
    revisions: [current, previous],
    nodes: [node("n1")],
    pods: [pod("p1", "n1", old), pod("p2", "n1")],
    writes: ["delete pod p1", "event SuccessfulDelete Deleted pod: p1", "status 1,1,0,1"],
  },
  {
    title: "surge replaces old pods that are not available at once",
    daemonSet: daemonSet(surge),
    revisions: [current, previous],
    nodes: [node("n1"), node("n2")],
    pods: [pod("p1", "n1", { ...old, ready: false }), pod("p2", "n2", { ...old, ready: false })],
    writes: [
      "create pod on n1",
      "create pod on n2",
      "event SuccessfulCreate Created pod: ds-1",
      "event SuccessfulCreate Created pod: ds-2",
      "status 2,2,0,0",
    ],
  },
  {
    title: "counts a pod as available after minReadySeconds, without an event",
    daemonSet: daemonSet({ minReadySeconds: 5 }),
    nodes: [node("n1")],
    pods: [pod("p1", "n1")],
    options: { advanceMs: 5002 },
    writes: ["status 1,1,1,0", "status 1,1,1,1"],
  },
  {
    title: "deletes the lowest revisions above the limit, except those of pods",
    daemonSet: daemonSet({ revisionHistoryLimit: 1, updateStrategy: { type: "OnDelete" } }),
    revisions: [
      revision("b", "img:b", 1),
      revision("c", "img:c", 2),
      revision("d", "img:d", 3),
      revision("a", "img:1", 4),
    ],
    nodes: [node("n1")],
    pods: [pod("p1", "n1", { hash: "b" })],
    writes: ["delete controllerrevision ds-c", "delete controllerrevision ds-d", "status 1,1,0,1"],
  },
  {
    title: "writes the status also if a creation fails, and retries",
    nodes: [node("n1"), node("n2"), node("n3")],
    options: {
      advanceMs: 4,
      fail: (write) => {
        if (write.startsWith("create pod"))
          throw forbidden({ group: "", resource: "pods", name: "" }, "exceeded quota");
      },
    },
    writes: [
      "create pod on n1",
      "event FailedCreate Error creating: pods is forbidden: exceeded quota",
      "status 3,0,0,0",
    ],
  },
  {
    title: "does nothing while it is deleted",
    daemonSet: daemonSet({}, { metadata: { ...daemonSet().metadata, deletionTimestamp: NOW } }),
    nodes: [node("n1")],
    writes: [],
  },
  {
    title: "refuses an empty selector",
    daemonSet: daemonSet({ selector: {} }),
    nodes: [node("n1")],
    writes: ["event SelectingAll This daemon set is selecting all pods. A non-empty selector is required."],
  },
];

for (const { title, revisions = [current], nodes = [], pods = [], options, writes, ...one } of cases) {
  t.test(`the DaemonSet controller ${title}`, async (t) => {
    const owner = objectsOf(daemonSetKind, one.daemonSet ?? daemonSet());
    const objects = [
      objectsOf(controllerRevisionKind, ...revisions),
      objectsOf(nodeKind, ...nodes),
      objectsOf(podKind, ...pods),
    ];
    const found = await syncOnce(runDaemonSetController, owner, objects, { show, ...options });
    // Events are sent beside the other writes.
    t.same([...found].sort(), [...writes].sort());
  });
}

const synced = (counters: Partial<DaemonSetStatus>): DaemonSet => {
  const none = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
  return daemonSet({}, { status: { ...none, observedGeneration: 1, ...counters } });
};
const oneReady = { currentNumberScheduled: 1, desiredNumberScheduled: 1, numberReady: 1 };
const oneUpToDate = synced({ ...oneReady, updatedNumberScheduled: 1, numberAvailable: 1 });
const misplaced = synced({ numberMisscheduled: 1 });
const onNode = [pod("p1", "n1")];

const nodeCases: readonly (Pick<Case, "title" | "daemonSet" | "nodes" | "pods" | "writes"> & { changed: Node })[] = [
  {
    title: "a taint that keeps new pods away from a node with a pod starts no sync",
    daemonSet: oneUpToDate,
    nodes: [node("n1")],
    pods: onNode,
    changed: node("n1", [noSchedule]),
    writes: [],
  },
  {
    title: "a taint that evicts the pod of the node starts a sync",
    daemonSet: oneUpToDate,
    nodes: [node("n1")],
    pods: onNode,
    changed: node("n1", [noExecute]),
    writes: ["delete pod p1", "event SuccessfulDelete Deleted pod: p1", "status 0,0,0,0"],
  },
  {
    title: "a node that fits again and has a pod starts a sync while pods are misscheduled",
    daemonSet: misplaced,
    nodes: [node("n1", [noSchedule])],
    pods: onNode,
    changed: node("n1"),
    writes: ["status 1,1,1,1"],
  },
  {
    title: "a change of labels that leaves the node without a pod fit starts a sync",
    daemonSet: synced({}),
    nodes: [node("n1", [noSchedule])],
    pods: [],
    changed: node("n1", [], { changed: "yes" }),
    writes: ["create pod on n1", "event SuccessfulCreate Created pod: ds-1", "status 1,0,0,0"],
  },
  {
    title: "a taint of a node without a pod starts no sync",
    daemonSet: synced({}),
    nodes: [node("n1", [noSchedule])],
    pods: [],
    changed: node("n1", [noExecute]),
    writes: [],
  },
];

for (const { title, changed, nodes = [], pods = [], writes, ...one } of nodeCases) {
  t.test(`${title} of the DaemonSet`, async (t) => {
    const owner = objectsOf(daemonSetKind, one.daemonSet ?? daemonSet());
    const objects = [
      objectsOf(controllerRevisionKind, current),
      objectsOf(nodeKind, ...nodes),
      objectsOf(podKind, ...pods),
    ];
    const found = await syncOnce(runDaemonSetController, owner, objects, {
      show,
      changes: [objectsOf(nodeKind, changed)],
    });
    t.same([...found].sort(), [...writes].sort());
  });
}
