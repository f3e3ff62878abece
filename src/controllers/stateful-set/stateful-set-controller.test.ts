import t from "tap";
import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import type { ControllerRevision } from "../../api/apps/controller-revision/schema.ts";
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import type { StatefulSet, StatefulSetSpec, StatefulSetStatus } from "../../api/apps/stateful-set/schema.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { alreadyExists, conflict, type ErrorSubject, forbidden } from "../../api/status.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import type { ControllerDeps } from "../controller.ts";
import { revisionData } from "../workload/controller-history.ts";
import { runStatefulSetController } from "./stateful-set-controller.ts";

const NOW = new Date(START).toISOString();
const template = (image: string) => ({
  metadata: { labels: { app: "db" } },
  spec: { containers: [{ name: "c", image }] },
});
const claimTemplate: PersistentVolumeClaim = { metadata: { name: "data" }, spec: { accessModes: ["ReadWriteOnce"] } };

interface SetOptions {
  readonly status?: StatefulSetStatus;
  readonly deleted?: boolean;
}

function set(spec: Partial<StatefulSetSpec> = {}, { status, deleted = false }: SetOptions = {}): StatefulSet {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name: "db",
      namespace: "ns",
      uid: "db-uid",
      generation: 1,
      ...(deleted ? { deletionTimestamp: NOW } : {}),
    },
    spec: {
      replicas: 2,
      serviceName: "db",
      selector: { matchLabels: { app: "db" } },
      template: template("img:1"),
      podManagementPolicy: "OrderedReady",
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

const controller = {
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  name: "db",
  uid: "db-uid",
  controller: true,
  blockOwnerDeletion: true,
};

function revision(name: string, image: string, number: number): ControllerRevision {
  return {
    metadata: { name, namespace: "ns", uid: name, labels: { app: "db" }, ownerReferences: [controller] },
    data: revisionData(template(image)),
    revision: number,
  };
}

interface PodState {
  readonly revision?: string;
  readonly phase?: "Failed" | "Pending" | "Running" | "Succeeded";
  readonly ready?: boolean;
  readonly deleted?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly volume?: boolean;
}

function pod(name: string, { revision: label = "b", phase = "Running", ready = true, ...more }: PodState = {}): Pod {
  const labels = more.labels ?? { "statefulset.kubernetes.io/pod-name": name };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "ns",
      uid: `${name}-uid`,
      labels: { app: "db", "controller-revision-hash": label, ...labels },
      ownerReferences: [controller],
      ...(more.deleted === true ? { deletionTimestamp: NOW } : {}),
    },
    spec: {
      containers: [],
      ...(more.volume === true
        ? { volumes: [{ name: "data", persistentVolumeClaim: { claimName: `data-${name}` } }] }
        : {}),
    },
    status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: NOW }] },
  };
}

function claim(name: string, owners: readonly object[] = [], deleted = false): PersistentVolumeClaim {
  return {
    metadata: {
      name,
      namespace: "ns",
      ownerReferences: owners as never,
      ...(deleted ? { deletionTimestamp: NOW } : {}),
    },
  };
}

function show({ verb, kind, object }: Write): string {
  const name = object.metadata?.name;
  if (kind.kind === "Event") {
    const { reason, message } = object as { readonly reason?: string; readonly message?: string };
    return `event ${reason} ${message}`;
  }
  if (kind.kind === "Pod" && verb === "create") {
    const { metadata, spec } = object as Pod;
    return `create pod ${name} ${spec?.containers[0]?.image} ${metadata?.labels?.["controller-revision-hash"]}`;
  }
  if (kind.kind === "PersistentVolumeClaim" && verb === "update") {
    return `update claim ${name} of ${object.metadata?.ownerReferences?.map((owner) => owner.kind).join() ?? ""}`;
  }
  if (verb !== "status") return `${verb} ${kind.singular} ${name}`;
  const { replicas, readyReplicas, currentReplicas, updatedReplicas, currentRevision, updateRevision } =
    (object as StatefulSet).status ?? {};
  return `status ${[replicas, readyReplicas, currentReplicas, updatedReplicas]} ${currentRevision} ${updateRevision}`;
}

interface Case {
  readonly title: string;
  readonly set?: StatefulSet;
  readonly revisions?: readonly ControllerRevision[];
  readonly pods?: readonly Pod[];
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly options?: SyncOnceOptions;
  readonly writes: readonly string[];
}

const first = revision("b", "img:1", 2);
const both = [revision("a", "img:0", 1), first];
const updating: SetOptions = { status: { replicas: 3, currentRevision: "a", updateRevision: "b", currentReplicas: 3 } };
const parallel = { podManagementPolicy: "Parallel" as const };
const claims = { volumeClaimTemplates: [claimTemplate] };
const created = (name: string): string => `event SuccessfulCreate create Pod ${name} in StatefulSet db successful`;
const deleted = (name: string): string => `event SuccessfulDelete delete Pod ${name} in StatefulSet db successful`;
const failing = (start: string, error: Error): SyncOnceOptions => ({
  advanceMs: 4,
  fail: (write) => {
    if (write.startsWith(start)) throw error;
  },
});
function conflictOnce(start: string, subject: ErrorSubject): (write: string) => void {
  let failed = false;
  return (write) => {
    if (failed || !write.startsWith(start)) return;
    failed = true;
    throw conflict(subject, "the object has been modified");
  };
}
const quota = forbidden({ group: "", resource: "pods", name: "db-0" }, "exceeded quota");

const cases: readonly Case[] = [
  {
    title: "creates the revision and the first pod",
    revisions: [],
    writes: [
      "create controllerrevision db-8f8848548",
      "create pod db-0 img:1 db-8f8848548",
      created("db-0"),
      "status 0,0,0,0 db-8f8848548 db-8f8848548",
    ],
  },
  {
    title: "creates the next pod when the one before is ready",
    pods: [pod("db-0")],
    writes: ["create pod db-1 img:1 b", created("db-1"), "status 1,1,1,1 b b"],
  },
  { title: "waits for a pod that is not ready", pods: [pod("db-0", { ready: false })], writes: ["status 1,0,1,1 b b"] },
  {
    title: "waits for minReadySeconds",
    set: set({ minReadySeconds: 5 }),
    pods: [pod("db-0")],
    options: { advanceMs: 5002 },
    writes: ["status 1,1,1,1 b b", "create pod db-1 img:1 b", created("db-1"), "status 1,1,1,1 b b"],
  },
  {
    title: "waits until a deleted pod is gone, since its name is taken",
    pods: [pod("db-0", { deleted: true })],
    writes: ["status 1,1,0,0 b b"],
  },
  {
    title: "begins at the start ordinal",
    set: set({ ordinals: { start: 5 } }),
    writes: ["create pod db-5 img:1 b", created("db-5"), "status 0,0,0,0 b b"],
  },
  {
    title: "creates all pods of a parallel set",
    set: set({ ...parallel, replicas: 3 }),
    writes: [
      "create pod db-0 img:1 b",
      "create pod db-1 img:1 b",
      "create pod db-2 img:1 b",
      created("db-0"),
      created("db-1"),
      created("db-2"),
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "creates one pod of a set of any size",
    set: set({ replicas: 2 ** 31 - 1 }),
    pods: [pod("db-0"), pod("db-2")],
    writes: ["create pod db-1 img:1 b", created("db-1"), "status 2,2,2,2 b b"],
  },
  {
    title: "deletes an ended pod and creates it later",
    pods: [pod("db-0", { phase: "Succeeded", ready: false })],
    writes: ["delete pod db-0", deleted("db-0"), "status 1,0,1,1 b b"],
  },
  {
    title: "scales down the highest ordinal first",
    set: set({ replicas: 1 }),
    pods: [pod("db-0"), pod("db-1"), pod("db-2")],
    writes: ["delete pod db-2", deleted("db-2"), "status 3,3,3,3 b b"],
  },
  {
    title: "scales no pod down while a lower one is not ready",
    set: set({ replicas: 1 }),
    pods: [pod("db-0", { ready: false }), pod("db-1")],
    writes: ["status 2,1,2,2 b b"],
  },
  {
    title: "scales down the unhealthy pod itself",
    set: set({ replicas: 1 }),
    pods: [pod("db-0"), pod("db-1", { ready: false })],
    writes: ["delete pod db-1", deleted("db-1"), "status 2,1,2,2 b b"],
  },
  {
    title: "scales a parallel set down at once",
    set: set({ ...parallel, replicas: 1 }),
    pods: [pod("db-0", { ready: false }), pod("db-1"), pod("db-2", { ready: false })],
    writes: ["delete pod db-2", "delete pod db-1", deleted("db-2"), deleted("db-1"), "status 3,1,3,3 b b"],
  },
  {
    title: "updates the pod with the highest ordinal",
    set: set({ replicas: 3 }, updating),
    revisions: both,
    pods: ["db-0", "db-1", "db-2"].map((name) => pod(name, { revision: "a" })),
    writes: ["delete pod db-2", deleted("db-2"), "status 3,3,2,0 a b"],
  },
  {
    title: "waits for the updated pod",
    set: set({ replicas: 2 }, updating),
    revisions: both,
    pods: [pod("db-0", { revision: "a" }), pod("db-1", { ready: false })],
    writes: ["status 2,1,1,1 a b"],
  },
  {
    title: "leaves pods below the partition",
    set: set({ replicas: 2, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } }, updating),
    revisions: both,
    pods: [pod("db-0", { revision: "a" }), pod("db-1")],
    writes: ["status 2,2,1,1 a b"],
  },
  {
    title: "creates a pod below the partition with the current revision",
    set: set({ replicas: 2, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } }, updating),
    revisions: both,
    pods: [pod("db-1")],
    writes: ["create pod db-0 img:0 a", created("db-0"), "status 1,1,0,1 a b"],
  },
  {
    title: "completes an update",
    set: set({ replicas: 2 }, updating),
    revisions: both,
    pods: [pod("db-0"), pod("db-1")],
    writes: ["status 2,2,2,2 b b"],
  },
  {
    title: "OnDelete leaves pods, and creates them with the update revision",
    set: set({ replicas: 2, updateStrategy: { type: "OnDelete" } }, updating),
    revisions: both,
    pods: [pod("db-0", { revision: "a" })],
    writes: ["create pod db-1 img:1 b", created("db-1"), "status 1,1,1,0 a b"],
  },
  {
    title: "numbers the revision of an earlier template again",
    revisions: [revision("b", "img:1", 1), revision("a", "img:0", 2)],
    pods: [pod("db-0"), pod("db-1")],
    writes: ["update controllerrevision b", "status 2,2,2,2 b b"],
  },
  {
    title: "deletes the lowest revisions above the limit, except those of pods",
    set: set({ revisionHistoryLimit: 1, updateStrategy: { type: "OnDelete" } }),
    revisions: [
      revision("x", "img:x", 1),
      revision("y", "img:y", 2),
      revision("z", "img:z", 3),
      revision("b", "img:1", 4),
    ],
    pods: [pod("db-0", { revision: "x" }), pod("db-1")],
    writes: ["status 2,2,1,1 b b", "delete controllerrevision y"],
  },
  {
    title: "restores the labels of a pod's identity",
    pods: [pod("db-0", { labels: {} }), pod("db-1")],
    writes: [
      "update pod db-0",
      "event SuccessfulUpdate update Pod db-0 in StatefulSet db successful",
      "status 2,2,2,2 b b",
    ],
  },
  {
    title: "releases a pod whose name is not of the set",
    pods: [pod("db-0"), pod("db-1"), pod("other")],
    writes: ["patch pod other", "status 2,2,2,2 b b"],
  },
  {
    title: "creates the claims of a pod before the pod",
    set: set(claims),
    writes: [
      "create persistentvolumeclaim data-db-0",
      "create pod db-0 img:1 b",
      "event SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success",
      created("db-0"),
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "creates the claims of a pending pod again",
    set: set(claims),
    pods: [pod("db-0", { phase: "Pending", ready: false, volume: true })],
    writes: [
      "create persistentvolumeclaim data-db-0",
      "event SuccessfulCreate create Claim data-db-0 Pod db-0 in StatefulSet db success",
      "status 1,0,1,1 b b",
    ],
  },
  {
    title: "creates no pod while its claim is being deleted",
    set: set(claims),
    claims: [claim("data-db-0", [], true)],
    options: { advanceMs: 4 },
    writes: [
      "event FailedCreate create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted",
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "makes the set the owner of claims that go with it",
    set: set({
      ...claims,
      replicas: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" },
    }),
    pods: [pod("db-0", { volume: true })],
    claims: [claim("data-db-0")],
    writes: [
      "update claim data-db-0 of StatefulSet",
      "update pod db-0",
      "event SuccessfulUpdate update Pod db-0 in StatefulSet db successful",
      "status 1,1,1,1 b b",
    ],
  },
  {
    title: "makes the set the owner in spite of a conflict",
    set: set({
      ...claims,
      replicas: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Retain" },
    }),
    claims: [claim("data-db-0")],
    options: {
      fail: conflictOnce("update claim", {
        group: "",
        resource: "persistentvolumeclaims",
        name: "data-db-0",
      }),
    },
    writes: [
      "create pod db-0 img:1 b",
      "update claim data-db-0 of StatefulSet",
      "update claim data-db-0 of StatefulSet",
      created("db-0"),
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "makes a pod that is scaled down the owner of its claims",
    set: set({
      ...claims,
      replicas: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Delete" },
    }),
    pods: [pod("db-0", { volume: true }), pod("db-1", { volume: true })],
    claims: [claim("data-db-0"), claim("data-db-1")],
    writes: ["update claim data-db-1 of Pod", "delete pod db-1", deleted("db-1"), "status 2,2,2,2 b b"],
  },
  {
    title: "waits for the deletion of the claim of an earlier pod",
    set: set({
      ...claims,
      replicas: 1,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Delete" },
    }),
    claims: [claim("data-db-0", [{ apiVersion: "v1", kind: "Pod", name: "db-0", uid: "earlier", controller: true }])],
    writes: ["status 0,0,0,0 b b"],
  },
  {
    title: "reports a failed creation and writes the status",
    options: failing("create pod", quota),
    writes: [
      "create pod db-0 img:1 b",
      'event FailedCreate create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota',
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "reports no pod that exists already",
    options: failing("create pod", alreadyExists({ group: "", resource: "pods", name: "db-0" })),
    writes: ["create pod db-0 img:1 b", "status 0,0,0,0 b b"],
  },
  {
    title: "reports a claim that cannot be created, and no pod",
    set: set(claims),
    options: failing("create persistentvolumeclaim", quota),
    writes: [
      "create persistentvolumeclaim data-db-0",
      "event FailedCreate create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: " +
        'pods "db-0" is forbidden: exceeded quota',
      "event FailedCreate create Pod db-0 in StatefulSet db failed error: " +
        'failed to create PVC data-db-0: pods "db-0" is forbidden: exceeded quota',
      "status 0,0,0,0 b b",
    ],
  },
  {
    title: "only writes the status of a set that is being deleted",
    set: set({ replicas: 3 }, { deleted: true }),
    pods: [pod("db-0", { ready: false })],
    writes: ["status 1,0,1,1 b b"],
  },
];

t.test("the StatefulSet controller creates at most 500 pods of a parallel set at once", async (t) => {
  const owner = objectsOf(statefulSetKind, set({ ...parallel, replicas: 2 ** 31 - 1 }));
  const objects = [objectsOf(controllerRevisionKind, first), objectsOf(podKind, pod("db-7", { revision: "a" }))];
  const found = await syncOnce(runStatefulSetController, owner, objects, { show });
  t.equal(found.filter((write) => write.startsWith("create pod")).length, 500);
  t.same(
    found.filter((write) => write.startsWith("delete pod")),
    [],
    "and updates none yet",
  );
});

for (const { title, revisions = [first], pods = [], claims: volumes = [], options, writes, ...one } of cases) {
  t.test(`the StatefulSet controller ${title}`, async (t) => {
    const owner = objectsOf(statefulSetKind, one.set ?? set());
    const objects = [
      objectsOf(controllerRevisionKind, ...revisions),
      objectsOf(podKind, ...pods),
      objectsOf(persistentVolumeClaimKind, ...volumes),
    ];
    const found = await syncOnce(runStatefulSetController, owner, objects, { show, ...options });
    const isEvent = (write: string): boolean => write.startsWith("event ");
    // Events are sent beside the other writes.
    t.same(found.filter(isEvent), writes.filter(isEvent));
    t.same(
      found.filter((write) => !isEvent(write)),
      writes.filter((write) => !isEvent(write)),
    );
  });
}

const rollingUpdates = [
  ["no limit: one", {}, "", "db-4"],
  ["a number", { maxUnavailable: 2 }, "", "db-4 db-3"],
  ["a percentage, rounded down", { maxUnavailable: "50%" }, "", "db-4 db-3"],
  ["a percentage of less than one", { maxUnavailable: "10%" }, "", "db-4"],
  ["those above the partition", { maxUnavailable: 3, partition: 4 }, "", "db-4"],
  ["unavailable pods count, wherever they are", { maxUnavailable: 3 }, "db-0", "db-4 db-3"],
  ["none when all are used up", { maxUnavailable: 1 }, "db-0", ""],
  ["a ready pod that is not available yet does not count", { maxUnavailable: 1 }, "", "db-4", 3600],
] as const;
for (const [title, rollingUpdate, unready, deleted, minReadySeconds = 0] of rollingUpdates) {
  t.test(`with the gate MaxUnavailableStatefulSet, of outdated pods are deleted: ${title}`, async (t) => {
    const found = set({
      replicas: 5,
      podManagementPolicy: "Parallel",
      minReadySeconds,
      updateStrategy: { type: "RollingUpdate", rollingUpdate },
    });
    const pods = [0, 1, 2, 3, 4].map((index) => `db-${index}`);
    const run = (deps: ControllerDeps): Promise<void> =>
      runStatefulSetController({ ...deps, features: { has: (gate) => gate === "MaxUnavailableStatefulSet" } });
    const objects = [
      objectsOf(controllerRevisionKind, revision("a", "img:0", 1), revision("b", "img:1", 2)),
      objectsOf(podKind, ...pods.map((name) => pod(name, { revision: "a", ready: name !== unready }))),
    ];
    const writes = await syncOnce(run, objectsOf(statefulSetKind, found), objects, { show });
    const deletions = writes.filter((write) => write.startsWith("delete pod ")).map((write) => write.slice(11));
    t.equal(deletions.join(" "), deleted);
  });
}
