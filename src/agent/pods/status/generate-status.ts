import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { PodContext, PodSettings } from "../pod-context.ts";
import { isResizeInProgress } from "../resources/resize.ts";
import { withoutUnfinishedStarts } from "../worker/pod-memory.ts";
import { computePodStatus, hasInitialized } from "./pod-status.ts";

/** The status of a pod from its worker's context. */
export function generateStatus(pod: PodContext, isTerminated: boolean): PodStatus {
  const { services, memory } = pod;
  const status = computePodStatus({
    pod: pod.pod,
    observation: withoutUnfinishedStarts(memory, pod.observation),
    now: services.clock.now(),
    startTime: memory.startTime,
    hostIps: services.node().ips,
    runtimeName: services.getRuntimeName(),
    waitingReasons: memory.waitingReasons,
    isReady: (container, id) => services.probes.isReady(container, id),
    hasStarted: (container, id) => services.probes.hasStarted(container, id),
    isTerminating: pod.termination !== undefined,
    isReplaced: (id) => pod.termination === undefined && memory.toRestart.has(id),
    isTerminated,
    hasInitialized: memory.hasInitialized ?? hasInitialized(pod.pod, memory.status),
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
  return withoutGatedFields(status, services.settings);
}

/** Without the fields of features whose gate is off. */
function withoutGatedFields(
  status: PodStatus,
  { inPlaceResize = true, supplementalGroupsPolicy = true }: PodSettings,
): PodStatus {
  if (inPlaceResize && supplementalGroupsPolicy) return status;
  const strip = ({ resources, allocatedResources, user, ...rest }: ContainerStatus): ContainerStatus => ({
    ...rest,
    ...(inPlaceResize && resources !== undefined ? { resources } : {}),
    ...(inPlaceResize && allocatedResources !== undefined ? { allocatedResources } : {}),
    ...(supplementalGroupsPolicy && user !== undefined ? { user } : {}),
  });
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = status;
  return {
    ...status,
    ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(strip) }),
    ...(containerStatuses && { containerStatuses: containerStatuses.map(strip) }),
    ...(ephemeralContainerStatuses && { ephemeralContainerStatuses: ephemeralContainerStatuses.map(strip) }),
  };
}
