import t from "tap";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import type { Deployment, DeploymentSpec, DeploymentStatus } from "../../api/apps/deployment/schema.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { alreadyExists, forbidden } from "../../api/status.ts";
import { objectsOf, START, type SyncOnceOptions, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { runDeploymentController } from "./deployment-controller.ts";

const template = (image: string) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "c", image }] },
});
/** The hash of the template without defaults. */
const HASH = "7585456747";

interface DeploymentOptions {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly status?: DeploymentStatus;
}

function deployment(spec: Partial<DeploymentSpec> = {}, { annotations, status }: DeploymentOptions = {}): Deployment {
  const base = { name: "web", namespace: "ns", uid: "web-uid", generation: 1 };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...base, annotations: { "deployment.kubernetes.io/revision": "2", ...annotations } },
    spec: {
      replicas: 4,
      selector: { matchLabels: { app: "web" } },
      template: template("img:2"),
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      revisionHistoryLimit: 10,
      ...spec,
    },
    status: { observedGeneration: 1, ...status },
  };
}

interface SetState {
  readonly replicas: number;
  readonly available?: number;
  readonly revision?: number;
  readonly desired?: number;
  readonly created?: number;
  readonly orphan?: boolean;
}

function set(
  name: string,
  image: string,
  { replicas, available = replicas, revision = 1, ...more }: SetState,
): ReplicaSet {
  const { desired = 4, created = 0 } = more;
  const controller = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: "web-uid", controller: true };
  return {
    metadata: {
      name,
      namespace: "ns",
      uid: name,
      generation: 1,
      creationTimestamp: new Date(START + created * 1000).toISOString(),
      labels: { app: "web", "pod-template-hash": name },
      annotations: {
        "deployment.kubernetes.io/revision": String(revision),
        "deployment.kubernetes.io/desired-replicas": String(desired),
        "deployment.kubernetes.io/max-replicas": String(desired + 1),
      },
      ...(more.orphan === true ? {} : { ownerReferences: [controller] }),
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web", "pod-template-hash": name } },
      template: { ...template(image), metadata: { labels: { app: "web", "pod-template-hash": name } } },
    },
    status: { replicas, readyReplicas: available, availableReplicas: available, observedGeneration: 1 },
  };
}

function pod(owner: string): Pod {
  const reference = { apiVersion: "apps/v1", kind: "ReplicaSet", name: owner, uid: owner, controller: true };
  return { metadata: { name: `${owner}-1`, namespace: "ns", uid: "p", ownerReferences: [reference] } };
}

function show({ verb, kind, object }: Write): string {
  const { name, annotations } = object.metadata ?? {};
  if (kind.kind === "Event") {
    const { reason, message } = object as { readonly reason?: string; readonly message?: string };
    return `event ${reason} ${message}`;
  }
  const revision = annotations?.["deployment.kubernetes.io/revision"];
  if (kind.kind === "ReplicaSet" && verb !== "delete") {
    return `${verb} ${name} ${(object as ReplicaSet).spec?.replicas} revision ${revision}`;
  }
  if (verb !== "status") return `${verb} ${kind.singular} ${name}`;
  const { replicas, updatedReplicas, availableReplicas, conditions = [] } = (object as Deployment).status ?? {};
  const reasons = conditions.map((condition) => ` ${condition.reason}`).join("");
  return `status ${[replicas, updatedReplicas, availableReplicas]} revision ${revision}${reasons}`;
}

interface Case {
  readonly title: string;
  readonly deployment?: Deployment;
  readonly sets?: readonly ReplicaSet[];
  readonly pods?: readonly Pod[];
  readonly options?: SyncOnceOptions;
  readonly writes: readonly string[];
}

const scaled = (direction: string, name: string, from: number, to: number): string =>
  `event ScalingReplicaSet Scaled ${direction} replica set ${name} from ${from} to ${to}`;
const recreate = { strategy: { type: "Recreate" as const } };
const current = (replicas: number, available?: number): ReplicaSet =>
  set("new", "img:2", { replicas, ...(available === undefined ? {} : { available }), revision: 2, created: 1 });
const old = (replicas: number, available = replicas): ReplicaSet => set("old", "img:1", { replicas, available });
const isAvailable = "MinimumReplicasAvailable";
const isUnavailable = "MinimumReplicasUnavailable";
/** Conditions that were written before the test begins. */
const progressing = (reason: string, at: number): DeploymentStatus => {
  const time = new Date(START - at).toISOString();
  return {
    observedGeneration: 1,
    conditions: [
      { type: "Available", status: "True", reason: isAvailable, lastUpdateTime: time, lastTransitionTime: time },
      { type: "Progressing", status: "True", reason, lastUpdateTime: time, lastTransitionTime: time },
    ],
  };
};
/** Five seconds before the deadline. */
const halted: DeploymentStatus = {
  ...progressing("ReplicaSetUpdated", 5000),
  replicas: 5,
  updatedReplicas: 2,
  readyReplicas: 3,
  availableReplicas: 3,
  unavailableReplicas: 2,
};
const failing = (start: string, error: Error): SyncOnceOptions => ({
  advanceMs: 4,
  fail: (write) => {
    if (write.startsWith(start)) throw error;
  },
});

const cases: readonly Case[] = [
  {
    title: "creates the replica set of the template",
    deployment: deployment({}, { annotations: { "deployment.kubernetes.io/revision": "1" } }),
    writes: [
      `create web-${HASH} 4 revision 1`,
      scaled("up", `web-${HASH}`, 0, 4),
      `status 0,0,0 revision 1 ${isUnavailable}`,
    ],
  },
  {
    title: "creates it as large as the surge allows, with the next revision",
    sets: [old(4)],
    deployment: deployment({}, { annotations: { "deployment.kubernetes.io/revision": "1" } }),
    writes: [
      `create web-${HASH} 1 revision 2`,
      scaled("up", `web-${HASH}`, 0, 1),
      "status ,, revision 2",
      "update old 3 revision 1",
      scaled("down", "old", 4, 3),
      `status 4,0,4 revision 2 ${isAvailable}`,
    ],
  },
  {
    title: "uses an earlier replica set with the template again",
    sets: [set("new", "img:2", { replicas: 0, revision: 1 }), set("old", "img:1", { replicas: 4, revision: 2 })],
    writes: [
      "update new 0 revision 3",
      "status ,, revision 3",
      "update new 1 revision 3",
      scaled("up", "new", 0, 1),
      `status 4,0,4 revision 3 ${isAvailable}`,
    ],
  },
  {
    title: "scales old replica sets down as far as unavailability allows",
    sets: [old(4), current(1, 0)],
    writes: ["update old 3 revision 1", scaled("down", "old", 4, 3), `status 5,1,4 revision 2 ${isAvailable}`],
  },
  {
    title: "scales unavailable old replicas down first",
    sets: [old(4, 2), current(1, 1)],
    writes: ["update old 2 revision 1", scaled("down", "old", 4, 2), `status 5,1,3 revision 2 ${isAvailable}`],
  },
  {
    title: "does not count pods of replica sets that are scaled down, though their status lists them as available",
    sets: [set("older", "img:0", { replicas: 0, available: 2 }), old(2), current(3, 1)],
    writes: ["status 5,3,5 revision 2 MinimumReplicasAvailable"],
  },
  {
    title: "waits while too few replicas are available",
    sets: [old(3), current(2, 0)],
    writes: [`status 5,2,3 revision 2 ${isAvailable}`],
  },
  {
    title: "scales all active replica sets in proportion",
    deployment: deployment({ replicas: 8 }),
    sets: [old(3), current(2)],
    writes: [
      "update old 5 revision 1",
      "update new 4 revision 2",
      scaled("up", "old", 3, 5),
      scaled("up", "new", 2, 4),
      `status 5,2,5 revision 2 ${isUnavailable}`,
    ],
  },
  {
    title: "scales the only replica set while paused, without a rollout",
    deployment: deployment({ paused: true, replicas: 2 }),
    sets: [old(4)],
    writes: ["update old 2 revision 1", scaled("down", "old", 4, 2), `status 4,0,4 revision 2 ${isAvailable}`],
  },
  {
    title: "keeps its history while it is paused and about to be rolled back",
    deployment: deployment(
      { paused: true, revisionHistoryLimit: 0 },
      { annotations: { "deprecated.deployment.rollback.to": "1" } },
    ),
    sets: [old(0), current(4)],
    writes: ["status 4,4,4 revision 2 MinimumReplicasAvailable"],
  },
  {
    title: "notes a pause in the condition",
    deployment: deployment({ paused: true, progressDeadlineSeconds: 10 }),
    sets: [current(4)],
    writes: ["status ,, revision 2 DeploymentPaused", `status 4,4,4 revision 2 DeploymentPaused ${isAvailable}`],
  },
  {
    title: "notes progress in the condition",
    deployment: deployment({ progressDeadlineSeconds: 10 }, { status: progressing("NewReplicaSetCreated", 5000) }),
    sets: [old(4), current(1, 0)],
    writes: [
      "update old 3 revision 1",
      scaled("down", "old", 4, 3),
      `status 5,1,4 revision 2 ${isAvailable} ReplicaSetUpdated`,
    ],
  },
  {
    title: "exceeds the progress deadline, without an event",
    deployment: deployment({ progressDeadlineSeconds: 10 }, { status: halted }),
    sets: [old(3), current(2, 0)],
    options: { advanceMs: 6500 },
    writes: [`status 5,2,3 revision 2 ${isAvailable} ProgressDeadlineExceeded`],
  },
  {
    title: "completes with the last replica",
    deployment: deployment({ progressDeadlineSeconds: 10 }, { status: progressing("ReplicaSetUpdated", 5000) }),
    sets: [old(0), current(4)],
    writes: [`status 4,4,4 revision 2 ${isAvailable} NewReplicaSetAvailable`],
  },
  {
    title: "Recreate scales all old replica sets down first",
    deployment: deployment(recreate),
    sets: [old(4)],
    writes: ["update old 0 revision 1", scaled("down", "old", 4, 0), `status 4,0,4 revision 2 ${isAvailable}`],
  },
  {
    title: "Recreate waits for old pods",
    deployment: deployment(recreate),
    sets: [old(0)],
    pods: [pod("old")],
    writes: [`status 0,0,0 revision 2 ${isUnavailable}`],
  },
  {
    title: "Recreate creates the replica set when the old pods are gone",
    deployment: deployment(recreate),
    sets: [old(0)],
    writes: [
      `create web-${HASH} 4 revision 2`,
      scaled("up", `web-${HASH}`, 0, 4),
      `status 0,0,0 revision 2 ${isUnavailable}`,
    ],
  },
  {
    title: "deletes the lowest revisions above the limit",
    deployment: deployment(
      { revisionHistoryLimit: 1 },
      { status: { replicas: 4, updatedReplicas: 4, availableReplicas: 4, readyReplicas: 4 } },
    ),
    sets: [
      set("a", "img:a", { replicas: 0, revision: 1 }),
      set("b", "img:b", { replicas: 0, revision: 0 }),
      current(4),
    ],
    writes: ["delete replicaset b", `status 4,4,4 revision 2 ${isAvailable}`],
  },
  {
    title: "adopts replica sets that match",
    sets: [set("new", "img:2", { replicas: 4, revision: 2, orphan: true })],
    writes: ["patch new 4 revision 2", `status 4,4,4 revision 2 ${isAvailable}`],
  },
  {
    title: "counts a collision when the name belongs to another replica set",
    sets: [set(`web-${HASH}`, "img:9", { replicas: 0 })],
    options: failing("create", alreadyExists({ group: "apps", resource: "replicasets", name: `web-${HASH}` })),
    writes: [`create web-${HASH} 4 revision 2`, "status ,, revision 2"],
  },
  {
    title: "reports a replica set that cannot be created",
    deployment: deployment({ progressDeadlineSeconds: 10 }),
    options: failing("create", forbidden({ group: "apps", resource: "replicasets", name: "" }, "exceeded quota")),
    writes: [
      `create web-${HASH} 4 revision 1`,
      `event ReplicaSetCreateError Failed to create new replica set "web-${HASH}": ` +
        "replicasets.apps is forbidden: exceeded quota",
      "status ,, revision 2 ReplicaSetCreateError",
    ],
  },
  {
    title: "rolls back by the annotation of former API versions",
    deployment: deployment({}, { annotations: { "deprecated.deployment.rollback.to": "1" } }),
    sets: [set("old", "img:1", { replicas: 0, revision: 1 }), current(4)],
    writes: ["update deployment web", 'event DeploymentRollback Rolled back deployment "web" to revision 1'],
  },
  {
    title: "rolls back to the revision before with 0",
    deployment: deployment({}, { annotations: { "deprecated.deployment.rollback.to": "0" } }),
    sets: [set("old", "img:1", { replicas: 0, revision: 1 }), current(4)],
    writes: ["update deployment web", 'event DeploymentRollback Rolled back deployment "web" to revision 1'],
  },
  {
    title: "rolls back neither to an unknown revision",
    deployment: deployment({}, { annotations: { "deprecated.deployment.rollback.to": "7" } }),
    sets: [current(4)],
    writes: [
      "update deployment web",
      "event DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to.",
    ],
  },
  {
    title: "nor to the same template",
    deployment: deployment({}, { annotations: { "deprecated.deployment.rollback.to": "2" } }),
    sets: [current(4)],
    writes: [
      "update deployment web",
      "event DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current " +
        'deployment "web"',
    ],
  },
  {
    title: "refuses an empty selector",
    deployment: deployment({ selector: {} }),
    writes: ["event SelectingAll This deployment is selecting all pods. A non-empty selector is required."],
  },
];

for (const { title, sets = [], pods = [], options, writes, ...one } of cases) {
  t.test(`the Deployment controller ${title}`, async (t) => {
    const owner = objectsOf(deploymentKind, one.deployment ?? deployment());
    const objects = [objectsOf(replicaSetKind, ...sets), objectsOf(podKind, ...pods)];
    const found = await syncOnce(runDeploymentController, owner, objects, { show, ...options });
    const isEvent = (write: string): boolean => write.startsWith("event ");
    // Events are sent beside the other writes.
    t.same(found.filter(isEvent), writes.filter(isEvent));
    t.same(
      found.filter((write) => !isEvent(write)),
      writes.filter((write) => !isEvent(write)),
    );
  });
}
