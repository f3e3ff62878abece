/** The status of a daemon set. */
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import type { DaemonSet, DaemonSetStatus } from "../../api/apps/daemon-set/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Client } from "../../client/client.ts";
import { statusCodeOf } from "../api-errors.ts";
import { isPodAvailable, isPodReady } from "../workload/active-pods.ts";
import { isUpToDate, sortOldestFirst } from "./daemon-pods.ts";
import { fitNode } from "./node-fit.ts";
import type { PlanContext } from "./plan-pods.ts";

type Counters = Omit<DaemonSetStatus, "observedGeneration" | "collisionCount" | "conditions">;

export function countNodes({ daemonSet, nodes, podsByNode, hash, now }: PlanContext): Counters {
  const minReadySeconds = daemonSet.spec?.minReadySeconds ?? 0;
  const oldest: Pod[] = [];
  let desired = 0;
  let misscheduled = 0;
  for (const node of nodes) {
    const [pod] = sortOldestFirst(podsByNode.get(node.metadata?.name ?? "") ?? []);
    const { shouldRun } = fitNode(node, daemonSet);
    if (shouldRun) desired++;
    else if (pod !== undefined) misscheduled++;
    if (shouldRun && pod !== undefined) oldest.push(pod);
  }
  const available = oldest.filter((pod) => isPodAvailable(pod, minReadySeconds, now)).length;
  return {
    currentNumberScheduled: oldest.length,
    numberMisscheduled: misscheduled,
    desiredNumberScheduled: desired,
    numberReady: oldest.filter(isPodReady).length,
    updatedNumberScheduled: oldest.filter((pod) => isUpToDate(pod, hash)).length,
    numberAvailable: available,
    numberUnavailable: desired - available,
  };
}

export interface StatusWrite {
  readonly client: Client;
  readonly daemonSet: DaemonSet;
  readonly counters: Counters;
  /** Undefined if the pods were not synced with this generation. */
  readonly generation: number | undefined;
  readonly signal: AbortSignal;
}

/** Retries once with the current object: the counters depend on pods and nodes, not on the rest of it. */
export async function writeStatus({ client, daemonSet, counters, generation, signal }: StatusWrite): Promise<void> {
  const { name = "", namespace, uid, generation: current = 0 } = daemonSet.metadata ?? {};
  const before = daemonSet.status;
  const isSame = Object.entries(counters).every(([key, value]) => (before?.[key as keyof Counters] ?? 0) === value);
  if (isSame && (before?.observedGeneration ?? 0) >= current) return;
  const next = (object: DaemonSet): DaemonSet => {
    const observedGeneration = generation ?? object.status?.observedGeneration;
    return { ...object, status: { ...object.status, ...counters, observedGeneration } };
  };
  try {
    await client.updateStatus(daemonSetKind, next(daemonSet), signal);
  } catch (error) {
    if (statusCodeOf(error) !== 409) throw error;
    const fresh = await client.get(daemonSetKind, { name, namespace }, signal);
    if (fresh.metadata?.uid !== uid) throw error;
    await client.updateStatus(daemonSetKind, next(fresh), signal);
  }
}
