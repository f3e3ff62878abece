/** How much of a resource a node would have allocated with the pod on it, for scores. */
import type { NodeInfo } from "../../cache/node-info.ts";
import type { PodInfo } from "../../cache/pod-info.ts";

/** A resource and how much it counts. */
export interface ScoredResource {
  readonly name: string;
  readonly weight: number;
}

export const DEFAULT_SCORED_RESOURCES: readonly ScoredResource[] = [
  { name: "cpu", weight: 1 },
  { name: "memory", weight: 1 },
];

export interface Allocation {
  readonly name: string;
  readonly weight: number;
  readonly allocatable: (node: NodeInfo) => number;
  readonly requested: (node: NodeInfo) => number;
}

/**
 * `useRequested`: containers without requests count as zero, otherwise with defaults. Extended resources that the pod
 * does not request do not count.
 */
export function allocationsOf(
  pod: PodInfo,
  resources: readonly ScoredResource[],
  useRequested: boolean,
): readonly Allocation[] {
  const requests = useRequested ? pod.requests : pod.nonZeroRequests;
  return resources.flatMap(({ name, weight }): readonly Allocation[] => {
    const amount = requests.get(name);
    switch (name) {
      case "cpu": {
        const taken = useRequested
          ? (node: NodeInfo) => node.requested.milliCpu
          : (node: NodeInfo) => node.nonZeroMilliCpu;
        return [
          { name, weight, allocatable: (node) => node.allocatable.milliCpu, requested: (node) => taken(node) + amount },
        ];
      }
      case "memory": {
        const taken = useRequested ? (node: NodeInfo) => node.requested.memory : (node: NodeInfo) => node.nonZeroMemory;
        return [
          { name, weight, allocatable: (node) => node.allocatable.memory, requested: (node) => taken(node) + amount },
        ];
      }
      default: {
        if (name !== "ephemeral-storage" && amount === 0) return [];
        const common = { name, weight };
        return [
          {
            ...common,
            allocatable: (node) => node.allocatable.get(name),
            requested: (node) => node.requested.get(name) + amount,
          },
        ];
      }
    }
  });
}
