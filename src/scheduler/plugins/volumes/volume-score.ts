/** The score of a node by the part of the storage capacity that a pod's claims request. */
import { parseQuantity, quantityValue } from "../../../api/meta/quantity.ts";
import type { ResourceScore } from "../resources/scoring-strategy.ts";
import { requestOf } from "./match-volume.ts";
import { classOfClaim, classOfVolume } from "./pod-claims.ts";
import type { PodVolumes } from "./pod-volumes.ts";

interface ClassUsage {
  requested: number;
  capacity: number;
}

/**
 * The mean of the storage classes. Existing volumes count if there are any: each one is the capacity for its claim;
 * otherwise the published capacity counts, which the claims of a class share.
 */
export function scoreVolumes(volumes: PodVolumes | undefined, score: ResourceScore): number {
  if (volumes === undefined) return 0;
  const { bindings, provisions, capacities } = volumes;
  const classes = new Map<string, ClassUsage>();
  const usageOf = (name: string): ClassUsage => {
    const usage = classes.get(name) ?? { requested: 0, capacity: 0 };
    classes.set(name, usage);
    return usage;
  };
  for (const { volume, claim } of bindings) {
    const usage = usageOf(classOfVolume(volume));
    usage.requested += toBytes(requestOf(claim));
    usage.capacity += toBytes(volume.spec?.capacity?.storage);
  }
  for (const claim of bindings.length > 0 ? [] : provisions) {
    const capacity = capacities?.get(claim);
    if (capacity === undefined) continue;
    const usage = usageOf(classOfClaim(claim));
    usage.requested += toBytes(requestOf(claim));
    usage.capacity = toBytes(capacity);
  }
  const sum = [...classes.values()].reduce((total, { requested, capacity }) => total + score(requested, capacity), 0);
  return classes.size === 0 ? 0 : Math.round(sum / classes.size);
}

function toBytes(text = "0"): number {
  const quantity = parseQuantity(text);
  return quantity === undefined ? 0 : quantityValue(quantity);
}
