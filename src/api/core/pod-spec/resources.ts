/** What a whole pod asks for and may use, as Kubernetes adds up its containers. */

import type { Container } from "../container/schema.ts";
import type { ContainerStatus } from "../container/status.ts";
import type { Pod } from "../pod/schema.ts";
import {
  addResources,
  filterResources,
  maxResources,
  NO_RESOURCES,
  parseResourceList,
  type ResourceQuantities,
} from "../resources/quantities.ts";

export interface PodResourcesOptions {
  /** While containers are resized they have what they had and what they are to have: the larger counts. */
  readonly useStatusResources?: boolean;
  readonly includeOverhead?: boolean;
}

export function podRequests(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  const requests = aggregateContainers(pod, (container) =>
    requestsOf(container, containerStatusOf(pod, container, options), pod),
  );
  return options.includeOverhead === true ? addResources(requests, parseResourceList(pod.spec?.overhead)) : requests;
}

/** The overhead only counts where there is a limit. */
export function podLimits(pod: Pod, options: PodResourcesOptions = {}): ResourceQuantities {
  const limits = aggregateContainers(pod, (container) =>
    limitsOf(container, containerStatusOf(pod, container, options), pod),
  );
  if (options.includeOverhead !== true) return limits;
  return addResources(
    limits,
    filterResources(parseResourceList(pod.spec?.overhead), (name) => limits.has(name)),
  );
}

/**
 * All containers and sidecars together, or an init container beside the sidecars that were started before it, whichever
 * is more.
 */
function aggregateContainers({ spec }: Pod, of: (container: Container) => ResourceQuantities): ResourceQuantities {
  let sidecars = NO_RESOURCES;
  let starting = NO_RESOURCES;
  for (const container of spec?.initContainers ?? []) {
    const own = of(container);
    if (container.restartPolicy === "Always") {
      sidecars = addResources(sidecars, own);
      starting = maxResources(starting, sidecars);
    } else {
      starting = maxResources(starting, addResources(sidecars, own));
    }
  }
  const running = (spec?.containers ?? []).reduce((all, container) => addResources(all, of(container)), sidecars);
  return maxResources(running, starting);
}

/** Undefined where only the spec counts: init containers that end are never resized. */
function containerStatusOf(
  pod: Pod,
  container: Container,
  { useStatusResources: withStatus }: PodResourcesOptions,
): ContainerStatus | undefined {
  if (withStatus !== true) return undefined;
  const { initContainers = [] } = pod.spec ?? {};
  if (initContainers.includes(container) && container.restartPolicy !== "Always") return undefined;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const found = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === container.name);
  return found?.resources === undefined ? undefined : found;
}

function requestsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): ResourceQuantities {
  const wanted = parseResourceList(resources?.requests);
  if (status === undefined) return wanted;
  const present = maxResources(
    parseResourceList(status.resources?.requests),
    parseResourceList(status.allocatedResources),
  );
  return isInfeasible(pod) ? present : maxResources(wanted, present);
}

function limitsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): ResourceQuantities {
  const wanted = parseResourceList(resources?.limits);
  if (status === undefined) return wanted;
  const present = parseResourceList(status.resources?.limits);
  return isInfeasible(pod) ? present : maxResources(wanted, present);
}

/** The node will never give what was asked for. */
function isInfeasible({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, reason }) => type === "PodResizePending" && reason === "Infeasible");
}
