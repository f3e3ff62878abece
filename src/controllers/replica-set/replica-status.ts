/** The status of a replica set or replication controller. */
import type { ReplicaSetCondition, ReplicaSetStatus } from "../../api/apps/replica-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import { isPodAvailable, isPodReady } from "../workload/active-pods.ts";
import { messageOf } from "../workload/pod-control.ts";

const FAILURE = "ReplicaFailure";

export interface ReplicaOwnerView {
  readonly replicas: number;
  readonly minReadySeconds: number;
  readonly template: PodTemplateSpec | undefined;
  readonly status: ReplicaSetStatus | undefined;
  readonly generation: number;
}

/** Undefined if the status is up to date. `terminating` is the number of pods that end; it is left out when absent. */
export function calculateStatus(
  owner: ReplicaOwnerView,
  pods: readonly Pod[],
  error: unknown,
  now: number,
  terminating?: number,
): ReplicaSetStatus | undefined {
  const { template, status, generation, minReadySeconds } = owner;
  const { terminatingReplicas: _, ...rest } = status ?? {};
  const labels = Object.entries(template?.metadata?.labels ?? {});
  const isFullyLabeled = (pod: Pod): boolean => labels.every(([name, value]) => pod.metadata?.labels?.[name] === value);
  const next: ReplicaSetStatus = {
    ...rest,
    ...(terminating === undefined ? {} : { terminatingReplicas: terminating }),
    replicas: pods.length,
    fullyLabeledReplicas: pods.filter(isFullyLabeled).length,
    readyReplicas: pods.filter(isPodReady).length,
    availableReplicas: pods.filter((pod) => isPodAvailable(pod, minReadySeconds, now)).length,
    observedGeneration: generation,
    conditions: nextConditions(owner, pods.length, error, now),
  };
  return deepEqual(normalize(next), normalize(status)) ? undefined : next;
}

function normalize(status: ReplicaSetStatus | undefined): ReplicaSetStatus {
  return {
    replicas: status?.replicas ?? 0,
    fullyLabeledReplicas: status?.fullyLabeledReplicas ?? 0,
    readyReplicas: status?.readyReplicas ?? 0,
    availableReplicas: status?.availableReplicas ?? 0,
    terminatingReplicas: status?.terminatingReplicas,
    observedGeneration: status?.observedGeneration ?? 0,
    conditions: status?.conditions ?? [],
  };
}

/** A failure stays as it was first reported until a sync succeeds. */
function nextConditions(
  { replicas, status }: ReplicaOwnerView,
  found: number,
  error: unknown,
  now: number,
): readonly ReplicaSetCondition[] {
  const conditions = status?.conditions ?? [];
  const failure = conditions.find(({ type }) => type === FAILURE);
  if (error === undefined) return conditions.filter((condition) => condition !== failure);
  if (failure !== undefined) return conditions;
  const reason = found < replicas ? "FailedCreate" : found > replicas ? "FailedDelete" : "";
  const message = messageOf(error);
  return [...conditions, { type: FAILURE, status: "True", lastTransitionTime: formatTime(now), reason, message }];
}
