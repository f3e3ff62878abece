/** Whether tolerations cover a taint. */
import type { Toleration } from "../../../api/core/pod-spec/affinity.ts";
import type { Taint } from "../../cache/node-info.ts";

/** An empty effect or key of the toleration matches all. */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return (toleration.value ?? "") === (taint.value ?? "");
}

export function isTolerated(tolerations: readonly Toleration[], taint: Taint): boolean {
  return tolerations.some((toleration) => tolerates(toleration, taint));
}

/** The first taint that keeps pods away and is not tolerated. PreferNoSchedule does not keep pods away. */
export function findUntoleratedTaint(tolerations: readonly Toleration[], taints: readonly Taint[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !isTolerated(tolerations, taint));
}
