/** Selects the node for a pod: of the nodes that pass all filters, the one with the most free resources. */
import type { Pod } from "../api/core/pod/schema.ts";
import type { Filter } from "./filters/filter.ts";
import { nodeAffinity } from "./filters/node-affinity.ts";
import { hostPortsFree, resourcesFit } from "./filters/node-resources.ts";
import { nodeReady, nodeSchedulable } from "./filters/node-state.ts";
import { podAffinity } from "./filters/pod-affinity.ts";
import { taints } from "./filters/taints.ts";
import { topologySpread } from "./filters/topology-spread.ts";
import type { NodeInfo } from "./node-info.ts";
import { podRequests } from "./resources.ts";

/** In order: the reasons are those of the first filter that fails. */
const filters: readonly Filter[] = [
  nodeReady,
  nodeSchedulable,
  taints,
  nodeAffinity,
  hostPortsFree,
  resourcesFit,
  topologySpread,
  podAffinity,
];

export type Selection =
  | { readonly node: string }
  /** `0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were not ready.` */
  | { readonly node: undefined; readonly message: string };

export function selectNode(pod: Pod, infos: readonly NodeInfo[]): Selection {
  if (infos.length === 0) return { node: undefined, message: "no nodes available to schedule pods" };
  const counts = new Map<string, number>();
  let best: { readonly name: string; readonly score: number } | undefined;
  for (const info of infos) {
    const reasons = firstFailure(pod, info, infos);
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    if (reasons.length > 0) continue;
    const candidate = { name: info.node.metadata?.name ?? "", score: scoreLeastAllocated(pod, info) };
    if (best === undefined || candidate.score > best.score) best = candidate;
  }
  if (best !== undefined) return { node: best.name };
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return { node: undefined, message: `0/${infos.length} nodes are available: ${reasons.join(", ")}.` };
}

function firstFailure(pod: Pod, info: NodeInfo, all: readonly NodeInfo[]): readonly string[] {
  for (const filter of filters) {
    const reasons = filter(pod, info, all);
    if (reasons.length > 0) return reasons;
  }
  return [];
}

/** From 0 to 1: the share of CPU and memory that stays free with the pod. */
function scoreLeastAllocated(pod: Pod, info: NodeInfo): number {
  const requested = podRequests(pod);
  const shares = ["cpu", "memory"].map((name) => {
    const capacity = Number(info.allocatable.get(name) ?? 0n);
    if (capacity === 0) return 0;
    const taken = Number((info.requested.get(name) ?? 0n) + (requested.get(name) ?? 0n));
    return Math.max(0, (capacity - taken) / capacity);
  });
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}
