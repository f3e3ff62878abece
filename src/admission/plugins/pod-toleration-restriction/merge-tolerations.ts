/** Merges tolerations, and compares them for inclusion. */
import { type Toleration, toleration } from "../../../api/core/pod-spec/affinity.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";

/** Removes the tolerations that another one includes. The first of equal ones is kept. */
export function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): readonly Toleration[] {
  const all = [...first, ...second];
  const merged: Toleration[] = [];
  for (const [index, one] of all.entries()) {
    if (merged.some((kept) => isSuperset(kept, one))) continue;
    const later = all.slice(index + 1);
    if (later.some((other) => !semanticEqual(toleration, one, other) && isSuperset(other, one))) continue;
    merged.push(one);
  }
  return merged;
}

/** Whether every taint that `narrow` tolerates is tolerated by `wide`. */
export function isSuperset(wide: Toleration, narrow: Toleration): boolean {
  if (semanticEqual(toleration, wide, narrow)) return true;
  const [wideKey, narrowKey] = [wide.key ?? "", narrow.key ?? ""];
  // A toleration without key matches all taints.
  if (wideKey !== narrowKey && !(wideKey === "" && wide.operator === "Exists")) return false;
  if ((narrow.effect ?? "") !== (wide.effect ?? "") && wide.effect) return false;
  if (wide.effect === "NoExecute" && wide.tolerationSeconds !== undefined) {
    const { tolerationSeconds } = narrow;
    if (tolerationSeconds === undefined || tolerationSeconds > wide.tolerationSeconds) return false;
  }
  if (wide.operator === "Exists") return true;
  return narrow.operator === "Equal" && (narrow.value ?? "") === (wide.value ?? "");
}
