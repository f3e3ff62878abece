import { MAX_NODE_SCORE, type Plugin } from "../../framework/plugin.ts";
import { allocationsOf, DEFAULT_SCORED_RESOURCES, type ScoredResource } from "./allocation.ts";

export interface BalancedAllocationArgs {
  readonly resources?: readonly ScoredResource[] | undefined;
}

/** Prefers nodes on which the allocated shares of resources are alike. */
export function createBalancedAllocation({ resources = DEFAULT_SCORED_RESOURCES }: BalancedAllocationArgs): Plugin {
  return {
    name: "NodeResourcesBalancedAllocation",
    points: ["preScore", "score"],
    preScore({ pod }) {
      // A pod without requests changes no share.
      if (resources.every(({ name }) => pod.requests.get(name) === 0)) return undefined;
      const allocations = allocationsOf(pod, resources, true);
      return {
        score(node) {
          const shares: number[] = [];
          for (const { allocatable, requested } of allocations) {
            const capacity = allocatable(node);
            if (capacity !== 0) shares.push(Math.min(1, requested(node) / capacity));
          }
          return Math.trunc((1 - deviation(shares)) * MAX_NODE_SCORE);
        },
      };
    },
  };
}

/** The standard deviation. */
function deviation(shares: readonly number[]): number {
  if (shares.length < 2) return 0;
  if (shares.length === 2) return Math.abs((shares[0]! - shares[1]!) / 2);
  const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  return Math.sqrt(shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / shares.length);
}
