/** Status of a pod from its context: what most states show. */
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { PodContext } from "../pod-context.ts";
import { hasInitialized, podStatus } from "./pod-status.ts";
import { isResizeInProgress } from "../resources/resize.ts";

export function deriveStatus(pod: PodContext, ended: boolean): PodStatus {
  const { services, memory } = pod;
  return podStatus({
    pod: pod.pod,
    observation: pod.observation,
    now: services.clock.now(),
    startTime: memory.startTime,
    hostIps: services.node().ips,
    runtimeName: services.runtimeName(),
    waiting: memory.waiting,
    readyProbe: (container, id) => services.probes.ready(container, id),
    startedProbe: (container, id) => services.probes.started(container, id),
    ending: pod.termination !== undefined,
    replaced: (id) => pod.termination === undefined && memory.toRestart.has(id),
    ended,
    initialized: memory.initialized ?? hasInitialized(pod.pod, memory.status),
    failure: pod.termination?.failure,
    disruption: pod.termination?.disruption,
    previous: memory.status,
    actual: (name) => memory.resources.getActual(name),
    resize: { pending: memory.resources.pending, problem: memory.resources.problem, going: isResizeInProgress(pod) },
  });
}
