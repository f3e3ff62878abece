/** How many pods a disruption budget expects: the replicas that the controllers of its pods want. */
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import type { ReplicaSet } from "../../api/apps/replica-set/schema.ts";
import type { StatefulSet } from "../../api/apps/stateful-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ReplicationController } from "../../api/core/replication-controller/schema.ts";
import type { OwnerReference } from "../../api/meta/object-meta.ts";
import type { PodDisruptionBudget } from "../../api/policy/pod-disruption-budget/schema.ts";
import { parseApiVersion } from "../../api/scheme.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { controllerOf } from "../workload/object-keys.ts";
import { scaledValue } from "../workload/scaled-value.ts";
import { hasScale, isNotFound, resourceName, type Scales } from "../workload/scales.ts";

export interface ScaleSources {
  readonly deployments: Informer<Deployment>;
  readonly replicaSets: Informer<ReplicaSet>;
  readonly replicationControllers: Informer<ReplicationController>;
  readonly statefulSets: Informer<StatefulSet>;
  /** For controllers of other kinds. */
  readonly scales: Scales;
}

export interface ExpectedPods {
  readonly expected: number;
  readonly desiredHealthy: number;
  /** Whether pods without a controller were left out. */
  readonly hasUnmanaged: boolean;
}

interface OwnerScale {
  readonly uid: string;
  readonly replicas: number;
}

/** Rejects if the scale of a pod's controller is unknown. Percentages round up. */
export async function expectedPods(
  { spec }: PodDisruptionBudget,
  pods: readonly Pod[],
  sources: ScaleSources,
  signal: AbortSignal,
): Promise<ExpectedPods> {
  const { maxUnavailable, minAvailable } = spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable === "number") {
    return { expected: pods.length, desiredHealthy: minAvailable, hasUnmanaged: false };
  }
  if (maxUnavailable === undefined && minAvailable === undefined) {
    return { expected: 0, desiredHealthy: 0, hasUnmanaged: false };
  }
  const { sum, hasUnmanaged } = await sumScales(pods, sources, signal);
  const desiredHealthy =
    maxUnavailable === undefined
      ? scaledValue(minAvailable ?? 0, sum, Math.ceil)
      : Math.max(0, sum - scaledValue(maxUnavailable, sum, Math.ceil));
  return { expected: sum, desiredHealthy, hasUnmanaged };
}

async function sumScales(pods: readonly Pod[], sources: ScaleSources, signal: AbortSignal) {
  const owners = new Map<string, OwnerReference>();
  const scales = new Map<string, number>();
  let hasUnmanaged = false;
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (owner === undefined) {
      hasUnmanaged = true;
      continue;
    }
    if (owners.has(owner.uid)) continue;
    owners.set(owner.uid, owner);
    const scale = await scaleOf(owner, pod.metadata?.namespace ?? "", sources, signal);
    if (scale === undefined) throw new Error(`found no controllers for pod ${JSON.stringify(pod.metadata?.name)}`);
    scales.set(scale.uid, scale.replicas);
  }
  const sum = [...scales.values()].reduce((total, replicas) => total + replicas, 0);
  return { sum, hasUnmanaged };
}

async function scaleOf(
  owner: OwnerReference,
  namespace: string,
  sources: ScaleSources,
  signal: AbortSignal,
): Promise<OwnerScale | undefined> {
  // An owner that the informers lack is read: the deployment of an orphaned replica set may be gone.
  return cachedScale(owner, namespace, sources) ?? (await subresourceScale(owner, namespace, sources.scales, signal));
}

function cachedScale(owner: OwnerReference, namespace: string, sources: ScaleSources): OwnerScale | undefined {
  const group = parseApiVersion(owner.apiVersion)?.group;
  if (owner.kind === "ReplicaSet" && (group === "apps" || group === "extensions")) {
    return replicaSetScale(owner, namespace, sources);
  }
  if (owner.kind === "StatefulSet" && group === "apps") return informerScale(sources.statefulSets, owner, namespace);
  if (owner.kind === "ReplicationController" && group === "") {
    return informerScale(sources.replicationControllers, owner, namespace);
  }
  return undefined;
}

/** The scale of the deployment of a replica set, which exceeds that of the set during a rollout. */
function replicaSetScale(
  owner: OwnerReference,
  namespace: string,
  { replicaSets, deployments }: ScaleSources,
): OwnerScale | undefined {
  const set = replicaSets.get(owner.name, namespace);
  if (set?.metadata?.uid !== owner.uid) return undefined;
  const deployment = controllerOf(set);
  if (deployment?.kind !== "Deployment") return { uid: owner.uid, replicas: set.spec?.replicas ?? 1 };
  return informerScale(deployments, deployment, namespace);
}

interface Scalable {
  readonly metadata?: { readonly uid?: string | undefined } | undefined;
  readonly spec?: { readonly replicas?: number | undefined } | undefined;
}

function informerScale(
  informer: Pick<Informer<Scalable>, "get">,
  { name, uid }: OwnerReference,
  namespace: string,
): OwnerScale | undefined {
  const object = informer.get(name, namespace);
  return object?.metadata?.uid === uid ? { uid, replicas: object.spec?.replicas ?? 1 } : undefined;
}

async function subresourceScale(
  { apiVersion, kind: kindName, name, uid }: OwnerReference,
  namespace: string,
  scales: Scales,
  signal: AbortSignal,
): Promise<OwnerScale | undefined> {
  const [kind] = await scales.kindsOf(apiVersion, kindName, signal);
  if (kind === undefined)
    throw new Error(`no matches for kind ${JSON.stringify(kindName)} in version ${JSON.stringify(apiVersion)}`);
  if (!hasScale(kind)) throw new Error(`${resourceName(kind)} does not implement the scale subresource`);
  try {
    const scale = await scales.get(kind, { name, namespace }, signal);
    return scale.metadata?.uid === uid ? { uid, replicas: scale.spec?.replicas ?? 0 } : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
