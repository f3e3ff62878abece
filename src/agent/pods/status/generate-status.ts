import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { PodContext, PodSettings } from "../pod-context.ts";
import { isResizeInProgress } from "../resources/resize.ts";
import { withoutUnfinishedStarts } from "../worker/pod-memory.ts";
import type { WaitingReason } from "./container-status.ts";
import { isResizeCondition } from "./pod-conditions.ts";
import { computePodStatus, hasInitialized } from "./pod-status.ts";

/** The status of a pod from its worker's context. `failure`: why the pod fails whatever its containers' exit codes. */
export function generateStatus(
  pod: PodContext,
  isTerminated: boolean,
  failure: WaitingReason | undefined = pod.termination?.failure,
): PodStatus {
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
    failure,
    disruption: pod.termination?.disruption,
    previous: memory.status,
    actualResources: (name) => memory.resources.getActual(name),
    resize: {
      pending: memory.resources.pending,
      problem: memory.resources.problem,
      isInProgress: isResizeInProgress(pod),
    },
  });
  const shown = withDeviceHealth(withoutGatedFields(status, services.settings), pod);
  return services.settings.observedGeneration === true ? withGeneration(shown, pod.pod.metadata?.generation) : shown;
}

/** As Kubernetes, of the app containers only. */
function withDeviceHealth(status: PodStatus, { pod, services }: PodContext): PodStatus {
  const { resourceManagers, settings } = services;
  const { containerStatuses } = status;
  if (settings.deviceHealth !== true || resourceManagers === undefined || containerStatuses === undefined)
    return status;
  const add = (each: ContainerStatus): ContainerStatus => {
    const allocatedResourcesStatus = resourceManagers.listDeviceHealth(pod, each.name);
    return allocatedResourcesStatus.length === 0 ? each : { ...each, allocatedResourcesStatus };
  };
  return { ...status, containerStatuses: containerStatuses.map(add) };
}

/** Without the fields of features whose gate is off. */
function withoutGatedFields(status: PodStatus, settings: PodSettings): PodStatus {
  const { inPlaceResize = true, supplementalGroupsPolicy = true, readyToStartCondition = true } = settings;
  const { conditions, ...others } = status;
  const kept = conditions?.filter(
    ({ type }) =>
      (readyToStartCondition || type !== "PodReadyToStartContainers") && (inPlaceResize || !isResizeCondition(type)),
  );
  const shown = kept === undefined ? others : { ...others, conditions: kept };
  if (inPlaceResize && supplementalGroupsPolicy) return shown;
  const strip = ({ resources, allocatedResources, user, ...rest }: ContainerStatus): ContainerStatus => ({
    ...rest,
    ...(inPlaceResize && resources !== undefined ? { resources } : {}),
    ...(inPlaceResize && allocatedResources !== undefined ? { allocatedResources } : {}),
    ...(supplementalGroupsPolicy && user !== undefined ? { user } : {}),
  });
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = shown;
  return {
    ...shown,
    ...(initContainerStatuses && { initContainerStatuses: initContainerStatuses.map(strip) }),
    ...(containerStatuses && { containerStatuses: containerStatuses.map(strip) }),
    ...(ephemeralContainerStatuses && { ephemeralContainerStatuses: ephemeralContainerStatuses.map(strip) }),
  };
}

/** Says to which generation of the pod the status and its conditions belong. */
function withGeneration(status: PodStatus, observedGeneration: number | undefined): PodStatus {
  if (observedGeneration === undefined) return status;
  const conditions = status.conditions?.map((condition) => ({ ...condition, observedGeneration }));
  return { ...status, observedGeneration, ...(conditions === undefined ? {} : { conditions }) };
}
