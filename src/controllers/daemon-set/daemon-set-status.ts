/** The status of a daemon set. */
import { daemonSetKind } from "../../api/apps/daemon-set/kind.ts";
import type { DaemonSet, DaemonSetStatus } from "../../api/apps/daemon-set/schema.ts";
import type { Client } from "../../client/client.ts";
import { statusCodeOf } from "../api-errors.ts";
import { isPodAvailable, isPodReady } from "../workload/active-pods.ts";
import { isUpToDate, sortOldestFirst } from "./daemon-pods.ts";
import { fitNode } from "./node-fit.ts";
import type { PlanContext } from "./plan-pods.ts";

type Counters = Omit<DaemonSetStatus, "observedGeneration" | "collisionCount" | "conditions">;

export function countNodes({ daemonSet, nodes, podsByNode, hash, now }: PlanContext): Counters {
  const minReadySeconds = daemonSet.spec?.minReadySeconds ?? 0;
  const wanted = nodes.filter((node) => fitNode(node, daemonSet).shouldRun);
  const podsOn = (name: string | undefined) => podsByNode.get(name ?? "") ?? [];
  const oldest = wanted.flatMap(({ metadata }) => sortOldestFirst(podsOn(metadata?.name)).slice(0, 1));
  const others = nodes.filter((node) => !wanted.includes(node));
  const available = oldest.filter((pod) => isPodAvailable(pod, minReadySeconds, now)).length;
  return {
    currentNumberScheduled: oldest.length,
    numberMisscheduled: others.filter(({ metadata }) => podsOn(metadata?.name).length > 0).length,
    desiredNumberScheduled: wanted.length,
    numberReady: oldest.filter(isPodReady).length,
    updatedNumberScheduled: oldest.filter((pod) => isUpToDate(pod, hash)).length,
    numberAvailable: available,
    numberUnavailable: wanted.length - available,
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
