/** The initial in-memory state of a pod's worker, from the status and the containers that an earlier agent left. */
import type { Pod, PodStatus } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { annotations, type Observation } from "../../runtime/observation.ts";
import type { PodMemory } from "../pod-context.ts";
import { ResourceAllocation } from "../resources/resource-allocation.ts";
import { RestartBackoff, type RestartDelays } from "./restart-backoff.ts";

export function createPodMemory(pod: Pod, clock: Clock, delays: RestartDelays | undefined): PodMemory {
  const started = pod.status?.startTime;
  return {
    backoff: new RestartBackoff(clock, delays),
    waitingReasons: new Map(),
    pendingReasons: new Map(),
    retryAt: new Map(),
    toRestart: new Set(),
    unfinishedStarts: new Set(),
    resources: new ResourceAllocation(pod),
    startTime: started === undefined ? clock.now() : Date.parse(started),
    status: restoreStatus(pod),
    hasInitialized: undefined,
    rejection: undefined,
    imageRefs: new Map(),
    released: Promise.withResolvers(),
  };
}

/**
 * The status that an earlier agent wrote. As in Kubernetes, addresses are not restored: they are those of the sandbox,
 * and a pod whose sandbox had stopped by then has none any more.
 */
function restoreStatus({ spec, status }: Pod): PodStatus | undefined {
  if (status?.conditions === undefined) return undefined;
  if (spec?.hostNetwork === true) return status;
  const { podIP: _ip, podIPs: _ips, ...rest } = status;
  return rest;
}

/** Without the containers that are being started. */
export function withoutUnfinishedStarts({ unfinishedStarts }: PodMemory, seen: Observation): Observation {
  if (unfinishedStarts.size === 0) return seen;
  return { ...seen, containers: seen.containers.filter(({ id }) => !unfinishedStarts.has(id)) };
}

/** Reads the restart delays from the annotations of an earlier agent's containers. */
export function adoptRestartDelays({ backoff }: PodMemory, { containers }: Observation): void {
  // Newest first.
  for (const { name, hash, annotations: values, createdAt } of containers) {
    backoff.adopt(`${name}/${hash}`, Number(values[annotations.restartDelay]), createdAt);
  }
}
