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
  return findToleration(tolerations, taint) !== undefined;
}

/**
 * The first toleration of the taint. Takes the same time for thousands of tolerations, which may be compared with
 * thousands of taints of each node.
 */
export function findToleration(tolerations: readonly Toleration[], taint: Taint): Toleration | undefined {
  if (tolerations.length <= LINEAR_MAX) return tolerations.find((toleration) => tolerates(toleration, taint));
  const positions = indexes.get(tolerations) ?? indexTolerations(tolerations);
  indexes.set(tolerations, positions);
  let first = tolerations.length;
  for (const key of ["", taint.key]) {
    for (const effect of ["", taint.effect]) {
      first = Math.min(
        first,
        positions.get(indexKey(key, effect, undefined)) ?? first,
        positions.get(indexKey(key, effect, taint.value ?? "")) ?? first,
      );
    }
  }
  return tolerations[first];
}

/** So many comparisons take less time than an index. */
const LINEAR_MAX = 16;

/** First positions. */
const indexes = new WeakMap<readonly Toleration[], ReadonlyMap<string, number>>();

function indexTolerations(tolerations: readonly Toleration[]): ReadonlyMap<string, number> {
  const positions = new Map<string, number>();
  for (const [position, { key = "", effect = "", operator, value = "" }] of tolerations.entries()) {
    const text = indexKey(key, effect, operator === "Exists" ? undefined : value);
    if (!positions.has(text)) positions.set(text, position);
  }
  return positions;
}

/** Equal for tolerations of the same taints; without a value they tolerate every value. */
function indexKey(key: string, effect: string, value: string | undefined): string {
  return `${key}\n${effect}\n${value === undefined ? "" : `=${value}`}`;
}

/** The first taint that keeps pods away and is not tolerated. PreferNoSchedule does not keep pods away. */
export function findUntoleratedTaint(tolerations: readonly Toleration[], taints: readonly Taint[]): Taint | undefined {
  return taints.find((taint) => taint.effect !== "PreferNoSchedule" && !isTolerated(tolerations, taint));
}
