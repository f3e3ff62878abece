/** What a pod requests: of its containers, of the pod as a whole, and its overhead. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ResourceList } from "../../api/core/resources/schema.ts";
import { Resources } from "./resources.ts";

/** What scores assume for a container that has no request, not even zero: a tenth of a core and 200 MiB. */
const DEFAULTS: ReadonlyMap<string, number> = new Map([
  ["cpu", 100],
  ["memory", 200 * 1024 * 1024],
]);
const NO_DEFAULTS: ReadonlyMap<string, number> = new Map();

type Container = NonNullable<Pod["spec"]>["containers"][number];
type ContainerStatus = NonNullable<NonNullable<Pod["status"]>["containerStatuses"]>[number];

/**
 * The maximum that the pod needs: all containers and sidecars together, or an init container with the sidecars started
 * before it, whichever is larger. While a container is resized, the larger of its old and new requests counts.
 */
export function podRequests(pod: Pod): Resources {
  return scheduledRequests(pod, NO_DEFAULTS);
}

/** The same with defaults for CPU and memory that containers do not request, which only scores use. */
export function nonZeroRequests(pod: Pod): Resources {
  return scheduledRequests(pod, DEFAULTS);
}

/** Of the specification alone, without what a resize has allocated. */
export function specRequests(pod: Pod): Resources {
  const total = aggregate(pod, ({ resources }) => Resources.of(resources?.requests));
  const level = Resources.of(podLevelRequests(pod));
  for (const name of level.names()) total.set(name, level.get(name));
  total.add(Resources.of(pod.spec?.overhead));
  return total;
}

/** Of the specification alone. A resource without a limit has none by overhead. */
export function specLimits(pod: Pod): Resources {
  const total = aggregate(pod, ({ resources }) => Resources.of(resources?.limits));
  const overhead = Resources.of(pod.spec?.overhead);
  for (const name of total.names()) total.set(name, total.get(name) + overhead.get(name));
  return total;
}

function scheduledRequests(pod: Pod, defaults: ReadonlyMap<string, number>): Resources {
  const statuses = new Map<string, ContainerStatus>();
  for (const status of [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])]) {
    statuses.set(status.name, status);
  }
  const infeasible = isResizeInfeasible(pod);
  const total = aggregate(pod, (container, isLongRunning) => {
    const status = isLongRunning ? statuses.get(container.name) : undefined;
    return containerRequests(container, status, infeasible, defaults);
  });
  const level = podLevelRequests(pod);
  const amounts = Resources.of(level);
  for (const name of Object.keys(level)) total.set(name, amounts.get(name));
  total.add(Resources.of(pod.spec?.overhead));
  return total;
}

function aggregate(pod: Pod, requestsOf: (container: Container, isLongRunning: boolean) => Resources): Resources {
  const total = new Resources();
  for (const container of pod.spec?.containers ?? []) total.add(requestsOf(container, true));
  const sidecars = new Resources();
  const starting = new Resources();
  for (const container of pod.spec?.initContainers ?? []) {
    const isSidecar = container.restartPolicy === "Always";
    const requests = requestsOf(container, isSidecar);
    if (isSidecar) {
      total.add(requests);
      sidecars.add(requests);
      starting.raise(sidecars);
    } else {
      requests.add(sidecars);
      starting.raise(requests);
    }
  }
  total.raise(starting);
  return total;
}

/** Requests of the pod as a whole replace those of its containers for CPU, memory and huge pages. */
function podLevelRequests(pod: Pod): ResourceList {
  return Object.fromEntries(
    Object.entries(pod.spec?.resources?.requests ?? {}).filter(([name]) => /^(?:cpu$|memory$|hugepages-)/.test(name)),
  );
}

function containerRequests(
  { resources }: Container,
  status: ContainerStatus | undefined,
  infeasible: boolean,
  defaults: ReadonlyMap<string, number>,
): Resources {
  const actual = status?.resources === undefined ? [] : [status.resources.requests, status.allocatedResources];
  const lists = actual.length > 0 && infeasible ? actual : [resources?.requests, ...actual];
  const requests = new Resources();
  for (const list of lists) requests.raise(Resources.of(list));
  for (const [name, amount] of defaults) {
    if (lists.every((list) => list?.[name] === undefined)) requests.set(name, amount);
  }
  return requests;
}

function isResizeInfeasible(pod: Pod): boolean {
  return (pod.status?.conditions ?? []).some(
    ({ type, reason }) => type === "PodResizePending" && reason === "Infeasible",
  );
}
