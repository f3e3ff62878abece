/** How tolerations cover one another. */
import { type Toleration, toleration } from "../../../api/core/pod-spec/affinity.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";

/** Of all, those that no other one covers. Of equal ones the first is kept. */
export function mergedTolerations(first: readonly Toleration[], second: readonly Toleration[]): readonly Toleration[] {
  const all = [...first, ...second];
  const merged: Toleration[] = [];
  for (const [index, one] of all.entries()) {
    if (merged.some((kept) => covers(kept, one))) continue;
    const later = all.slice(index + 1);
    if (later.some((other) => !semanticEqual(toleration, one, other) && covers(other, one))) continue;
    merged.push(one);
  }
  return merged;
}

/** Whether who has the first one has the second one too. */
export function covers(wide: Toleration, narrow: Toleration): boolean {
  if (semanticEqual(toleration, wide, narrow)) return true;
  const [wideKey, narrowKey] = [wide.key ?? "", narrow.key ?? ""];
  // Without a key it is for all taints.
  if (wideKey !== narrowKey && !(wideKey === "" && wide.operator === "Exists")) return false;
  if ((narrow.effect ?? "") !== (wide.effect ?? "") && wide.effect) return false;
  if (wide.effect === "NoExecute" && wide.tolerationSeconds !== undefined) {
    const { tolerationSeconds } = narrow;
    if (tolerationSeconds === undefined || tolerationSeconds > wide.tolerationSeconds) return false;
  }
  if (wide.operator === "Exists") return true;
  return narrow.operator === "Equal" && (narrow.value ?? "") === (wide.value ?? "");
}
