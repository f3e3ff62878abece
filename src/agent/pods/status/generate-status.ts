/** Status of a pod from its context: what most states show. */
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { PodContext } from "../pod-context.ts";
import { isResizeInProgress } from "../resources/resize.ts";
import { computePodStatus, hasInitialized } from "./pod-status.ts";

export function generateStatus(pod: PodContext, ended: boolean): PodStatus {
  const { services, memory } = pod;
  return computePodStatus({
    pod: pod.pod,
    observation: pod.observation,
    now: services.clock.now(),
    startTime: memory.startTime,
    hostIps: services.node().ips,
    runtimeName: services.runtimeName(),
    waitingReasons: memory.waitingReasons,
    isReady: (container, id) => services.probes.isReady(container, id),
    hasStarted: (container, id) => services.probes.hasStarted(container, id),
    isTerminating: pod.termination !== undefined,
    isReplaced: (id) => pod.termination === undefined && memory.toRestart.has(id),
    isTerminated: ended,
    initialized: memory.hasInitialized ?? hasInitialized(pod.pod, memory.status),
    failure: pod.termination?.failure,
    disruption: pod.termination?.disruption,
    previous: memory.status,
    actualResources: (name) => memory.resources.getActual(name),
    resize: {
      pending: memory.resources.pending,
      problem: memory.resources.problem,
      isInProgress: isResizeInProgress(pod),
    },
  });
}
