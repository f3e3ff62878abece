/** The order of a merged list: the order of the patch interleaved with that of the live list. */
import { ItemIndex, type Items } from "./item-identity.ts";

/**
 * `patchOrder` determines the order of the items it contains, `liveOrder` that of all others. The two are then
 * interleaved from the left: the next live-only item comes first when it precedes the next patched one in the live
 * list. Live `a b c d` patched in the order `c a` becomes `b c a d`.
 */
export function orderItems(merged: Items, patchOrder: Items, liveOrder: Items, mergeKey: string): unknown[] {
  const patchIndex = new ItemIndex(patchOrder, mergeKey);
  const liveIndex = new ItemIndex(liveOrder, mergeKey);
  const patched = merged.filter((item) => patchIndex.has(item));
  const others = merged.filter((item) => !patchIndex.has(item));
  return interleave(sortItems(others, liveIndex), sortItems(patched, patchIndex), liveIndex);
}

/**
 * The result of Kubernetes' insertion sort, in which an item that is not in `order` moves to the front: such an item
 * precedes the item that was the first of the order at that moment, and equal items keep their order.
 */
function sortItems(items: Items, order: ItemIndex): unknown[] {
  let first = Number.POSITIVE_INFINITY;
  const entries = items.map((item, sequence) => {
    const index = order.indexOf(item);
    if (index < 0) return { item, rank: first, tie: -1 - sequence };
    first = Math.min(first, index);
    return { item, rank: index, tie: sequence };
  });
  entries.sort((a, b) => (a.rank === b.rank ? a.tie - b.tie : a.rank - b.rank));
  return entries.map(({ item }) => item);
}

function interleave(left: Items, right: Items, liveIndex: ItemIndex): unknown[] {
  const result: unknown[] = [];
  let l = 0;
  let r = 0;
  while (l < left.length && r < right.length) {
    const indexL = liveIndex.indexOf(left[l]);
    const indexR = liveIndex.indexOf(right[r]);
    if (indexL >= 0 && indexR >= 0 && indexL < indexR) result.push(left[l++]);
    else result.push(right[r++]);
  }
  return [...result, ...left.slice(l), ...right.slice(r)];
}
