/** Writes the status of pods. */
import { podKind } from "../api/core/pod/kind.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { StatusError } from "../api/status.ts";
import type { Client } from "../client/client.ts";
import { formatTime } from "../schema/value/time.ts";
import type { Clock } from "../std/time/clock.ts";

interface PodStatusDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function patchPodStatus(
  { client, signal }: Pick<PodStatusDeps, "client" | "signal">,
  { metadata }: Pod,
  status: object,
): Promise<void> {
  const { name = "", namespace, uid } = metadata ?? {};
  // The uid makes the server reject the patch of another pod with the name.
  const patch = { metadata: { uid }, status };
  await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal });
}

export interface ScheduledCondition {
  readonly reason: "Unschedulable" | "SchedulerError";
  readonly message: string;
}

/**
 * Writes the condition PodScheduled and the nomination, if they change. `nominatedNodeName`: undefined keeps it, empty
 * clears it. A pod that is gone is no error.
 */
export async function writeUnschedulable(
  deps: PodStatusDeps,
  pod: Pod,
  { reason, message }: ScheduledCondition,
  nominatedNodeName: string | undefined,
): Promise<void> {
  const known = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  const isKnown = known?.status === "False" && known.reason === reason && known.message === message;
  const isNominated = nominatedNodeName === undefined || (pod.status?.nominatedNodeName ?? "") === nominatedNodeName;
  if (isKnown && isNominated) return;
  const now = formatTime(deps.clock.now());
  const lastTransitionTime = known?.status === "False" ? known.lastTransitionTime : now;
  const condition = { type: "PodScheduled", status: "False", reason, message, lastTransitionTime };
  const status = {
    ...(isKnown ? {} : { conditions: [condition] }),
    ...(isNominated ? {} : { nominatedNodeName: nominatedNodeName === "" ? null : nominatedNodeName }),
  };
  try {
    await patchPodStatus(deps, pod, status);
  } catch (error) {
    if (error instanceof StatusError && [404, 409].includes(error.status.code)) return;
    throw error;
  }
}
