/** The status of a stateful set. */
import { statefulSetKind } from "../../api/apps/stateful-set/kind.ts";
import type { StatefulSet, StatefulSetStatus } from "../../api/apps/stateful-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { statusCodeOf } from "../api-errors.ts";
import { isPodAvailable } from "../workload/active-pods.ts";
import { isCreated, isRunningAndReady, isTerminating, replicasOf, revisionOf } from "./stateful-pods.ts";

/** As Kubernetes' retries of conflicts. */
const ATTEMPTS_MAX = 5;

export interface RevisionNames {
  readonly current: string;
  readonly update: string;
}

/** The counters of the status. */
export interface Counters {
  readonly replicas: number;
  readonly readyReplicas: number;
  readonly availableReplicas: number;
  readonly currentReplicas: number;
  readonly updatedReplicas: number;
}

export function countPods({ spec }: StatefulSet, pods: readonly Pod[], names: RevisionNames, now: number): Counters {
  const created = pods.filter(isCreated);
  const ready = pods.filter(isRunningAndReady);
  const living = created.filter((pod) => !isTerminating(pod));
  return {
    replicas: created.length,
    readyReplicas: ready.length,
    availableReplicas: ready.filter((pod) => isPodAvailable(pod, spec?.minReadySeconds ?? 0, now)).length,
    currentReplicas: living.filter((pod) => revisionOf(pod) === names.current).length,
    updatedReplicas: living.filter((pod) => revisionOf(pod) === names.update).length,
  };
}

/** The update revision becomes the current one when all pods have it and are ready. */
export function completeRollingUpdate(set: StatefulSet, status: StatefulSetStatus): StatefulSetStatus {
  const replicas = replicasOf(set);
  const isComplete =
    set.spec?.updateStrategy?.type === "RollingUpdate" &&
    status.updatedReplicas === replicas &&
    status.readyReplicas === replicas &&
    status.replicas === replicas;
  if (!isComplete) return status;
  return { ...status, currentReplicas: status.updatedReplicas, currentRevision: status.updateRevision };
}

function isConsistent({ status: before }: StatefulSet, status: StatefulSetStatus): boolean {
  return (
    (status.observedGeneration ?? 0) <= (before?.observedGeneration ?? 0) &&
    status.replicas === (before?.replicas ?? 0) &&
    (status.currentReplicas ?? 0) === (before?.currentReplicas ?? 0) &&
    (status.readyReplicas ?? 0) === (before?.readyReplicas ?? 0) &&
    (status.updatedReplicas ?? 0) === (before?.updatedReplicas ?? 0) &&
    (status.availableReplicas ?? 0) === (before?.availableReplicas ?? 0) &&
    (status.currentRevision ?? "") === (before?.currentRevision ?? "") &&
    (status.updateRevision ?? "") === (before?.updateRevision ?? "")
  );
}

/** Retries conflicts with the current object: the status depends on pods, not on the rest of it. */
export async function writeStatus(
  client: Client,
  set: StatefulSet,
  status: StatefulSetStatus,
  signal: AbortSignal,
): Promise<void> {
  if (isConsistent(set, status)) return;
  const { name = "", namespace, uid } = set.metadata ?? {};
  let current = set;
  for (let attempt = 1; ; attempt++) {
    try {
      await client.updateStatus(statefulSetKind, { ...current, status }, signal);
      return;
    } catch (error) {
      if (statusCodeOf(error) !== 409 || attempt === ATTEMPTS_MAX) throw error;
      current = await client.get(statefulSetKind, { name, namespace }, signal);
      if (current.metadata?.uid !== uid) throw error;
    }
  }
}
