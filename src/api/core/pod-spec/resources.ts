/**
 * The requests and limits of a whole pod, aggregated as in Kubernetes' `PodRequests` and `PodLimits`. Those that the
 * spec has for the pod as a whole replace the sums of its containers.
 */
import type { Container } from "../container/schema.ts";
import type { ContainerStatus } from "../container/status.ts";
import type { Pod } from "../pod/schema.ts";
import { isPodLevelResource } from "../resources/names.ts";
import {
  addResources,
  filterResources,
  maxResources,
  NO_RESOURCES,
  parseResourceList,
  type ResourceQuantities,
} from "../resources/quantities.ts";
import type { ResourceList } from "../resources/schema.ts";
import type { PodSpec } from "./schema.ts";

export interface PodResourcesOptions {
  /** Counts the larger of desired and actual resources, for pods that are being resized. */
  readonly useStatusResources?: boolean;
  readonly includeOverhead?: boolean;
}

export function podRequests(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  const requests = withPodLevel(containerRequests(pod, options), pod.spec?.resources?.requests);
  return options.includeOverhead === true ? addResources(requests, parseResourceList(pod.spec?.overhead)) : requests;
}

/** Overhead counts only for resources that have a limit. */
export function podLimits(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  const limits = withPodLevel(containerLimits(pod, options), pod.spec?.resources?.limits);
  if (options.includeOverhead !== true) return limits;
  return addResources(
    limits,
    filterResources(parseResourceList(pod.spec?.overhead), (name) => limits.has(name)),
  );
}

/** Of the containers alone. */
export function containerRequests(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  return aggregateContainers(pod, (container) =>
    requestsOf(container, containerStatusOf(pod, container, options), pod),
  );
}

/** Of the containers alone. */
export function containerLimits(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  return aggregateContainers(pod, (container) => limitsOf(container, containerStatusOf(pod, container, options), pod));
}

function withPodLevel(ofContainers: ResourceQuantities, list: ResourceList | undefined): ResourceQuantities {
  if (list === undefined) return ofContainers;
  return new Map([...ofContainers, ...filterResources(parseResourceList(list), isPodLevelResource)]);
}

/** Whether the spec has requests or limits for the pod as a whole. */
export function hasPodLevelResources(spec: PodSpec | undefined): boolean {
  const { requests = {}, limits = {} } = spec?.resources ?? {};
  return [...Object.keys(requests), ...Object.keys(limits)].some(isPodLevelResource);
}

/**
 * The larger of: all containers and sidecars together; an init container together with the sidecars started before it.
 */
function aggregateContainers({ spec }: Pod, of: (container: Container) => ResourceQuantities): ResourceQuantities {
  let sidecars = NO_RESOURCES;
  let starting = NO_RESOURCES;
  for (const container of spec?.initContainers ?? []) {
    const resources = of(container);
    if (container.restartPolicy === "Always") {
      sidecars = addResources(sidecars, resources);
      starting = maxResources(starting, sidecars);
    } else {
      starting = maxResources(starting, addResources(sidecars, resources));
    }
  }
  const running = (spec?.containers ?? []).reduce((all, container) => addResources(all, of(container)), sidecars);
  return maxResources(running, starting);
}

/** Undefined where only the spec counts: init containers that are not sidecars are never resized. */
function containerStatusOf(
  pod: Pod,
  container: Container,
  { useStatusResources }: PodResourcesOptions,
): ContainerStatus | undefined {
  if (useStatusResources !== true) return undefined;
  const { initContainers = [] } = pod.spec ?? {};
  if (initContainers.includes(container) && container.restartPolicy !== "Always") return undefined;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const found = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === container.name);
  return found?.resources === undefined ? undefined : found;
}

function requestsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): ResourceQuantities {
  const desired = parseResourceList(resources?.requests);
  if (status === undefined) return desired;
  const actual = maxResources(
    parseResourceList(status.resources?.requests),
    parseResourceList(status.allocatedResources),
  );
  return isInfeasible(pod) ? actual : maxResources(desired, actual);
}

function limitsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): ResourceQuantities {
  const desired = parseResourceList(resources?.limits);
  if (status === undefined) return desired;
  const actual = parseResourceList(status.resources?.limits);
  return isInfeasible(pod) ? actual : maxResources(desired, actual);
}

/** The node can never allocate the desired resources. */
function isInfeasible({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, reason }) => type === "PodResizePending" && reason === "Infeasible");
}
