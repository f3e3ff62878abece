/** Kubernetes' messages for a pod that fits no node. */
import type { NodeRejections } from "./plugin.ts";

export interface Diagnosis {
  readonly nodeCount: number;
  readonly rejections: NodeRejections;
  /** A rejection before nodes were filtered replaces the reasons of nodes. */
  readonly preFilterMessage: string;
  readonly postFilterMessage: string;
}

/** `0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.` */
export function fitMessage({ nodeCount, rejections, preFilterMessage, postFilterMessage }: Diagnosis): string {
  const reasons = preFilterMessage === "" ? countReasons(nodeCount, rejections).join(", ") : preFilterMessage;
  const parts = [`0/${nodeCount} nodes are available:`, reasons === "" ? "" : `${reasons}.`, postFilterMessage];
  return parts.filter((part) => part !== "").join(" ");
}

/** `1 Insufficient cpu`, sorted as text. */
function countReasons(nodeCount: number, { byNode, absent }: NodeRejections): readonly string[] {
  const counts = new Map<string, number>();
  const count = (reasons: readonly string[], by: number): void => {
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + by);
  };
  for (const { reasons } of byNode.values()) count(reasons, 1);
  const others = nodeCount - byNode.size;
  if (others > 0 && absent !== undefined) count(absent.reasons, others);
  return [...counts].map(([reason, number]) => `${number} ${reason}`).sort();
}
