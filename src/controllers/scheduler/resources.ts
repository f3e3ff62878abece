/** What a pod asks of a node, in units that add up. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ResourceList } from "../../api/core/resources/schema.ts";
import { parseQuantity } from "../../api/meta/quantity.ts";

/** Amounts in nano-units by resource name. */
export type Amounts = ReadonlyMap<string, bigint>;

export function amountsOf(list: ResourceList | undefined): Amounts {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text)?.nanos ?? 0n]));
}

export function add(a: Amounts, b: Amounts): Amounts {
  const sum = new Map(a);
  for (const [name, amount] of b) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function larger(a: Amounts, b: Amounts): Amounts {
  const most = new Map(a);
  for (const [name, amount] of b) if (amount > (most.get(name) ?? 0n)) most.set(name, amount);
  return most;
}

/**
 * What the pod needs at its most: all containers and sidecars together, or an init container beside the sidecars
 * started before it, whichever is more; plus the overhead of its runtime.
 */
export function podRequests(pod: Pod): Amounts {
  let sidecars: Amounts = new Map();
  let starting: Amounts = new Map();
  for (const container of pod.spec?.initContainers ?? []) {
    const requests = amountsOf(container.resources?.requests);
    if (container.restartPolicy === "Always") {
      sidecars = add(sidecars, requests);
      starting = larger(starting, sidecars);
    } else {
      starting = larger(starting, add(sidecars, requests));
    }
  }
  let running = sidecars;
  for (const container of pod.spec?.containers ?? []) running = add(running, amountsOf(container.resources?.requests));
  return add(larger(running, starting), amountsOf(pod.spec?.overhead));
}
