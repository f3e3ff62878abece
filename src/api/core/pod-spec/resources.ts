/** What a whole pod asks for and may use, as Kubernetes adds up its containers. */

import type { Container } from "../container/schema.ts";
import type { ContainerStatus } from "../container/status.ts";
import type { Pod } from "../pod/schema.ts";
import { type Amounts, amountsOf, largest, NOTHING, pick, sum } from "../resources/quantities.ts";

export interface PodAmountsOptions {
  /** While containers are resized they have what they had and what they are to have: the larger counts. */
  readonly withStatus?: boolean;
  readonly withOverhead?: boolean;
}

export function podRequests(pod: Pod, options: PodAmountsOptions = {}): Amounts {
  const amounts = added(pod, (container) => requestsOf(container, statusOf(pod, container, options), pod));
  return options.withOverhead === true ? sum(amounts, amountsOf(pod.spec?.overhead)) : amounts;
}

/** The overhead only counts where there is a limit. */
export function podLimits(pod: Pod, options: PodAmountsOptions = {}): Amounts {
  const amounts = added(pod, (container) => limitsOf(container, statusOf(pod, container, options), pod));
  if (options.withOverhead !== true) return amounts;
  return sum(
    amounts,
    pick(amountsOf(pod.spec?.overhead), (name) => amounts.has(name)),
  );
}

/**
 * All containers and sidecars together, or an init container beside the sidecars that were started before it, whichever
 * is more.
 */
function added({ spec }: Pod, of: (container: Container) => Amounts): Amounts {
  let sidecars = NOTHING;
  let starting = NOTHING;
  for (const container of spec?.initContainers ?? []) {
    const own = of(container);
    if (container.restartPolicy === "Always") {
      sidecars = sum(sidecars, own);
      starting = largest(starting, sidecars);
    } else {
      starting = largest(starting, sum(sidecars, own));
    }
  }
  const running = (spec?.containers ?? []).reduce((all, container) => sum(all, of(container)), sidecars);
  return largest(running, starting);
}

/** Undefined where only the spec counts: init containers that end are never resized. */
function statusOf(pod: Pod, container: Container, { withStatus }: PodAmountsOptions): ContainerStatus | undefined {
  if (withStatus !== true) return undefined;
  const { initContainers = [] } = pod.spec ?? {};
  if (initContainers.includes(container) && container.restartPolicy !== "Always") return undefined;
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
  const found = [...containerStatuses, ...initContainerStatuses].find(({ name }) => name === container.name);
  return found?.resources === undefined ? undefined : found;
}

function requestsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): Amounts {
  const wanted = amountsOf(resources?.requests);
  if (status === undefined) return wanted;
  const present = largest(amountsOf(status.resources?.requests), amountsOf(status.allocatedResources));
  return isInfeasible(pod) ? present : largest(wanted, present);
}

function limitsOf({ resources }: Container, status: ContainerStatus | undefined, pod: Pod): Amounts {
  const wanted = amountsOf(resources?.limits);
  if (status === undefined) return wanted;
  const present = amountsOf(status.resources?.limits);
  return isInfeasible(pod) ? present : largest(wanted, present);
}

/** The node will never give what was asked for. */
function isInfeasible({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, reason }) => type === "PodResizePending" && reason === "Infeasible");
}
