/** The resource requests of pods, in units that add up. */
import type { Pod } from "../api/core/pod/schema.ts";
import type { ResourceList } from "../api/core/resources/schema.ts";
import { parseQuantity } from "../api/meta/quantity.ts";

/** Nano-units by resource name. */
export type ResourceAmounts = ReadonlyMap<string, bigint>;

export function parseAmounts(list: ResourceList | undefined): ResourceAmounts {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text)?.nanos ?? 0n]));
}

export function add(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  const sum = new Map(a);
  for (const [name, amount] of b) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function maximum(a: ResourceAmounts, b: ResourceAmounts): ResourceAmounts {
  const most = new Map(a);
  for (const [name, amount] of b) if (amount > (most.get(name) ?? 0n)) most.set(name, amount);
  return most;
}

/**
 * The maximum that the pod needs: all containers and sidecars together, or an init container with the sidecars started
 * before it, whichever is larger; plus the pod overhead.
 */
export function podRequests(pod: Pod): ResourceAmounts {
  let sidecars: ResourceAmounts = new Map();
  let starting: ResourceAmounts = new Map();
  for (const container of pod.spec?.initContainers ?? []) {
    const requests = parseAmounts(container.resources?.requests);
    if (container.restartPolicy === "Always") {
      sidecars = add(sidecars, requests);
      starting = maximum(starting, sidecars);
    } else {
      starting = maximum(starting, add(sidecars, requests));
    }
  }
  let running = sidecars;
  for (const container of pod.spec?.containers ?? [])
    running = add(running, parseAmounts(container.resources?.requests));
  return add(maximum(running, starting), parseAmounts(pod.spec?.overhead));
}
