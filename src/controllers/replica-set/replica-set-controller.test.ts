import t from "tap";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet, ReplicaSetSpec, ReplicaSetStatus } from "../../api/apps/replica-set/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { replicationControllerKind } from "../../api/core/replication-controller/kind.ts";
import type { ReplicationController } from "../../api/core/replication-controller/schema.ts";
import { conflict, forbidden, notFound } from "../../api/status.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { runReplicaSetController, runReplicationController } from "./replica-set-controller.ts";

const NOW = new Date(START).toISOString();

interface SetOptions {
  readonly status?: ReplicaSetStatus;
  readonly deleted?: boolean;
}

function set(spec: Partial<ReplicaSetSpec> = {}, { status, deleted = false }: SetOptions = {}): ReplicaSet {
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: "rs",
      namespace: "ns",
      uid: "rs-uid",
      generation: 2,
      ...(deleted ? { deletionTimestamp: NOW } : {}),
    },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: "rs" } },
      template: { metadata: { labels: { app: "rs", tier: "web" } }, spec: { containers: [] } },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

interface PodState {
  readonly owner?: string;
  readonly phase?: "Failed" | "Pending" | "Running" | "Succeeded";
  readonly ready?: boolean;
  readonly deleted?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly node?: string;
}

function pod(name: string, state: PodState = {}): Pod {
  const { owner = "rs", phase = "Running", ready = true, labels = { app: "rs", tier: "web" }, node = "n1" } = state;
  const reference = { apiVersion: "apps/v1", kind: "ReplicaSet", name: owner, uid: `${owner}-uid`, controller: true };
  return {
    metadata: {
      name,
      namespace: "ns",
      uid: name,
      labels,
      creationTimestamp: NOW,
      ...(owner === "" ? {} : { ownerReferences: [reference] }),
      ...(state.deleted === true ? { deletionTimestamp: NOW } : {}),
    },
    spec: { nodeName: node, containers: [] },
    status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: NOW }] },
  };
}

function show({ verb, kind, object }: Write): string {
  if (kind.kind === "Event") {
    const { reason, message } = object as { readonly reason?: string; readonly message?: string };
    return `event ${reason} ${message}`;
  }
  if (verb !== "status") return `${verb} ${kind.singular} ${object.metadata?.name ?? object.metadata?.generateName}`;
  const { status } = object as ReplicaSet;
  const { replicas, fullyLabeledReplicas, readyReplicas, availableReplicas, conditions = [] } = status ?? {};
  const failures = conditions.map(({ reason, message }) => ` ${reason}: ${message}`).join("");
  return `status ${[replicas, fullyLabeledReplicas, readyReplicas, availableReplicas]}${failures}`;
}

interface Case {
  readonly title: string;
  readonly set?: ReplicaSet;
  readonly pods?: readonly Pod[];
  readonly options?: SyncOnceOptions;
  readonly writes: readonly string[];
}

const failing = (start: string, error: Error): SyncOnceOptions => ({
  advanceMs: 4,
  fail: (write) => {
    if (write.startsWith(start)) throw error;
  },
});
const subject = { group: "", resource: "pods", name: "" };
const quota = forbidden(subject, "exceeded quota");
const failure = "FailedCreate: pods is forbidden: exceeded quota";

const cases: readonly Case[] = [
  {
    title: "creates missing pods",
    writes: [
      "create pod rs-",
      "create pod rs-",
      "event SuccessfulCreate Created pod: rs-1",
      "event SuccessfulCreate Created pod: rs-2",
      "status 0,0,0,0",
    ],
  },
  {
    title: "counts neither ended pods nor those that are being deleted",
    pods: [pod("a"), pod("b", { phase: "Failed" }), pod("c", { phase: "Succeeded" }), pod("d", { deleted: true })],
    writes: ["create pod rs-", "event SuccessfulCreate Created pod: rs-1", "status 1,1,1,1"],
  },
  {
    title: "deletes surplus pods, unready ones first",
    set: set({ replicas: 1 }),
    pods: [pod("a", { ready: false }), pod("b"), pod("c", { node: "", ready: false })],
    writes: [
      "delete pod c",
      "delete pod a",
      "event SuccessfulDelete Deleted pod: c",
      "event SuccessfulDelete Deleted pod: a",
      "status 3,3,1,1",
    ],
  },
  {
    title: "adopts orphans, releases pods that do not match and leaves those of others",
    set: set({ replicas: 1 }),
    pods: [pod("a", { owner: "" }), pod("b", { labels: { app: "other" } }), pod("c", { owner: "other" })],
    writes: ["patch pod b", "patch pod a", "status 1,1,1,1"],
  },
  {
    title: "counts pods that lack labels of the template",
    pods: [pod("a"), pod("b", { labels: { app: "rs" } })],
    writes: ["status 2,1,2,2"],
  },
  {
    title: "counts a pod as available after minReadySeconds, without an event",
    set: set({ replicas: 1, minReadySeconds: 3 }),
    pods: [pod("a")],
    options: { advanceMs: 3002 },
    writes: ["status 1,1,1,0", "status 1,1,1,1"],
  },
  {
    title: "writes no status that is up to date",
    set: set({ replicas: 0 }, { status: { replicas: 0, observedGeneration: 2 } }),
    writes: [],
  },
  {
    title: "tries one creation of many when it fails, and reports it in a condition",
    set: set({ replicas: 100 }),
    options: failing("create pod", quota),
    writes: ["create pod rs-", `event FailedCreate Error creating: ${quota.message}`, `status 0,0,0,0 ${failure}`],
  },
  {
    title: "removes the condition when nothing fails any more",
    set: set(
      { replicas: 1 },
      { status: { replicas: 1, conditions: [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate" }] } },
    ),
    pods: [pod("a")],
    writes: ["status 1,1,1,1"],
  },
  {
    title: "ignores that a pod to delete is gone",
    set: set({ replicas: 0 }),
    pods: [pod("a")],
    options: failing("delete pod", notFound({ ...subject, name: "a" })),
    writes: ["delete pod a", "status 1,1,1,1"],
  },
  {
    title: "reports a deletion that fails",
    set: set({ replicas: 0 }),
    pods: [pod("a")],
    options: failing("delete pod", quota),
    writes: [
      "delete pod a",
      `event FailedDelete Error deleting: ${quota.message}`,
      `status 1,1,1,1 FailedDelete: unable to delete pods: ${quota.message}`,
    ],
  },
  {
    title: "writes the status again after a conflict",
    pods: [pod("a"), pod("b")],
    options: {
      ...failing("status", conflict({ group: "apps", resource: "replicasets", name: "rs" }, "changed")),
    },
    writes: ["status 2,2,2,2", "status 2,2,2,2"],
  },
  {
    title: "only writes the status of a set that is being deleted",
    set: set({}, { deleted: true }),
    pods: [pod("a")],
    writes: ["status 1,1,1,1"],
  },
];

for (const { title, pods = [], options, writes, ...one } of cases) {
  t.test(`the ReplicaSet controller ${title}`, async (t) => {
    const owner = objectsOf(replicaSetKind, one.set ?? set());
    const found = await syncOnce(runReplicaSetController, owner, [objectsOf(podKind, ...pods)], { show, ...options });
    // Events are sent beside the other writes.
    t.same([...found].sort(), [...writes].sort());
  });
}

t.test("the ReplicationController controller selects by labels alone", async (t) => {
  const controller: ReplicationController = {
    apiVersion: "v1",
    kind: "ReplicationController",
    metadata: { name: "rc", namespace: "ns", uid: "rc-uid", generation: 1 },
    spec: { replicas: 2, selector: { app: "rs" }, template: { metadata: { labels: { app: "rs" } } } },
  };
  const objects = [objectsOf(podKind, pod("a", { owner: "" }), pod("b", { owner: "", labels: { app: "other" } }))];
  const found = await syncOnce(runReplicationController, objectsOf(replicationControllerKind, controller), objects, {
    show,
  });
  t.same(found, ["patch pod a", "create pod rc-", "event SuccessfulCreate Created pod: rc-1", "status 1,1,1,1"]);
});
