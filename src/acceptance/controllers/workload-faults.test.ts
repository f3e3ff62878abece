/** Stories of workloads with faults between the controllers and the API server: all end as without faults. */
import t from "tap";
import { controllerRevisionKind } from "../../api/apps/controller-revision/kind.ts";
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { persistentVolumeClaimKind } from "../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { replicationControllerKind } from "../../api/core/replication-controller/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { type Fault, faults } from "./faults.ts";
import { plainConnection, WorkloadCluster } from "./workload-cluster.ts";

const CONTROLLERS = ["daemonset", "deployment", "replicaset", "replicationcontroller", "statefulset"];

interface Workload {
  readonly name: string;
  readonly kind: Kind;
  readonly spec: object;
  /** Whether it has a rollout. */
  readonly updates: boolean;
}

const selector = { matchLabels: { app: "w" } };
const template = (image: string): object => ({
  metadata: { labels: { app: "w" } },
  spec: { containers: [{ name: "c", image }] },
});
const first = template("img:1");

const claims = {
  volumeClaimTemplates: [
    {
      metadata: { name: "data" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    },
  ],
  persistentVolumeClaimRetentionPolicy: { whenDeleted: "Delete", whenScaled: "Delete" },
};
const replicated = { replicas: 3, selector, template: first };

const workloads: readonly Workload[] = [
  { name: "Deployment", kind: deploymentKind as Kind, spec: replicated, updates: true },
  {
    name: "Deployment that recreates its pods",
    kind: deploymentKind as Kind,
    spec: { ...replicated, strategy: { type: "Recreate" } },
    updates: true,
  },
  { name: "ReplicaSet", kind: replicaSetKind as Kind, spec: replicated, updates: false },
  {
    name: "ReplicationController",
    kind: replicationControllerKind as Kind,
    spec: { ...replicated, selector: selector.matchLabels },
    updates: false,
  },
  {
    name: "StatefulSet with claims",
    kind: statefulSetKind as Kind,
    spec: { ...replicated, serviceName: "w", ...claims },
    updates: true,
  },
  {
    name: "parallel StatefulSet",
    kind: statefulSetKind as Kind,
    spec: { ...replicated, serviceName: "w", podManagementPolicy: "Parallel" },
    updates: true,
  },
  { name: "DaemonSet", kind: daemonSetKind as Kind, spec: { selector, template: first }, updates: true },
  {
    name: "DaemonSet with surge",
    kind: daemonSetKind as Kind,
    spec: { selector, template: first, updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    updates: true,
  },
];

/** Creates, updates and scales the workload; resolves with what is there in the end. */
async function play(cluster: WorkloadCluster, id: string, { kind, spec, updates }: Workload, fault: Fault) {
  const { client } = cluster;
  const namespace = `w-${id}`;
  const stop = new AbortController();
  const nodes = [1, 2, 3].map((n) => ({ metadata: { name: `${namespace}-${n}`, labels: { story: id } } }));
  const isDaemonSet = kind.kind === "DaemonSet";
  const own = isDaemonSet ? nodes : [];
  const isObserved = async (): Promise<boolean> => {
    const { metadata, status } = (await client.get(kind, { name: "w", namespace })) as Owner;
    // A pod on a wrong node may stay until an expectation expires.
    return status?.observedGeneration === metadata?.generation && (status?.numberMisscheduled ?? 0) === 0;
  };
  const settle = async (): Promise<void> => {
    await cluster.settle(fault.quietMs ?? 3000, isObserved);
    fault.between?.(cluster);
  };
  await cluster.openNamespace(namespace, fault.rules ?? [], own, stop.signal);
  cluster.connection = fault.connection?.(cluster) ?? plainConnection;
  for (let instance = 0; instance < (fault.instances ?? 1); instance++) cluster.startControllers();
  const name = { name: "w", namespace };
  const patch = (change: object) => client.patch(kind, name, "strategic", { spec: change });
  await client.create(kind, {
    metadata: name,
    spec: { ...spec, ...(isDaemonSet ? merge(first, id) : {}) },
  } as ApiObject);
  await settle();
  if (updates) await patch({ template: { spec: { containers: [{ name: "c", image: "img:2" }] } } });
  await settle();
  if (isDaemonSet)
    await client.patch(nodeKind, { name: `${namespace}-3` }, "merge", { metadata: { labels: { story: null } } });
  else await patch({ replicas: 2 });
  await settle();
  const state = await readState(cluster, namespace, kind);
  cluster.connection = plainConnection;
  await cluster.stop();
  stop.abort();
  return state;
}

function merge(base: object, id: string): object {
  const { spec, ...rest } = base as { readonly spec: object };
  return { template: { ...rest, spec: { ...spec, nodeSelector: { story: id } } } };
}

/** Without random names. */
async function readState(cluster: WorkloadCluster, namespace: string, kind: Kind) {
  const { client } = cluster;
  const owner = (await client.get(kind, { name: "w", namespace })) as Owner;
  const pods = (await client.list(podKind, { namespace })).items;
  const sets = (await client.list(replicaSetKind, { namespace })).items;
  const revisions = (await client.list(controllerRevisionKind, { namespace })).items;
  const volumes = (await client.list(persistentVolumeClaimKind, { namespace })).items;
  const { conditions = [], observedGeneration, collisionCount: _, ...counters } = owner.status ?? {};
  return {
    podsMax: cluster.podsMax,
    isObserved: observedGeneration === owner.metadata?.generation,
    counters: Object.fromEntries(Object.entries(counters).filter(([, value]) => typeof value === "number")),
    conditions: conditions.map(({ type, status }) => `${type}=${status}`).sort(),
    pods: pods
      .map(({ metadata, spec, status }) => {
        const ready = status?.conditions?.find(({ type }) => type === "Ready")?.status;
        const shown = kind.kind === "StatefulSet" ? metadata?.name : metadata?.generateName;
        const deleted = metadata?.deletionTimestamp === undefined ? "" : " deleted";
        return `${shown} ${spec?.containers[0]?.image} ${status?.phase} ${ready}${deleted}`;
      })
      .sort(),
    sets: sets.map(({ spec, status }) => `${spec?.replicas} ${status?.replicas}`).sort(),
    claims: volumes
      .map(({ metadata }) => `${metadata?.name} of ${metadata?.ownerReferences?.map((owner) => owner.kind).join()}`)
      .sort(),
    revisions: revisions.map(({ revision }) => Number(revision)).sort(),
  };
}

interface Owner extends ApiObject {
  readonly status?: Status;
}

interface Status {
  readonly observedGeneration?: number;
  readonly numberMisscheduled?: number;
  readonly collisionCount?: number;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

t.setTimeout(240_000);
for (const [index, workload] of workloads.entries()) {
  t.test(`a ${workload.name} ends in the same state whatever fails`, { timeout: 240_000 }, async (t) => {
    const cluster = await WorkloadCluster.start(t, CONTROLLERS);
    const wanted = await play(cluster, `${index}-plain`, workload, { name: "nothing fails" });
    t.equal(wanted.pods.length, 2);
    t.ok(wanted.isObserved);
    for (const [number, fault] of faults.entries()) {
      const state = await play(cluster, `${index}-${number}`, workload, fault);
      const mayExceed = fault.mayExceed === true && workload.kind.kind !== "StatefulSet";
      t.same(mayExceed ? { ...state, podsMax: wanted.podsMax } : state, wanted, fault.name);
    }
  });
}
