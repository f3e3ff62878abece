/** The order of a merged list: the order of the patch interleaved with that of the live list. */
import { deepEqual } from "../value/equal.ts";
import { isPlainObject } from "../value/plain-object.ts";

type Items = readonly unknown[];

/** Compares items by merge key, or by value without one. */
export function isSameItem(a: unknown, b: unknown, mergeKey: string): boolean {
  if (mergeKey === "") return deepEqual(a, b);
  return isPlainObject(a) && isPlainObject(b) && deepEqual(a[mergeKey], b[mergeKey]);
}

function indexIn(order: Items, item: unknown, mergeKey: string): number {
  return order.findIndex((candidate) => isSameItem(candidate, item, mergeKey));
}

/**
 * `patchOrder` determines the order of the items it contains, `liveOrder` that of all others. The two are then
 * interleaved from the left: the next live-only item comes first when it precedes the next patched one in the live
 * list. Live `a b c d` patched in the order `c a` becomes `b c a d`.
 */
export function orderItems(merged: Items, patchOrder: Items, liveOrder: Items, mergeKey: string): unknown[] {
  const patched = merged.filter((item) => indexIn(patchOrder, item, mergeKey) >= 0);
  const others = merged.filter((item) => indexIn(patchOrder, item, mergeKey) < 0);
  return interleave(
    sortItems(others, liveOrder, mergeKey),
    sortItems(patched, patchOrder, mergeKey),
    liveOrder,
    mergeKey,
  );
}

/** Insertion sort; an item that is not in `order` moves to the front, as in Kubernetes. */
function sortItems(items: Items, order: Items, mergeKey: string): unknown[] {
  const result: unknown[] = [];
  for (const item of items) {
    let at = result.length;
    while (at > 0 && precedes(item, result[at - 1], order, mergeKey)) at--;
    result.splice(at, 0, item);
  }
  return result;
}

function precedes(a: unknown, b: unknown, order: Items, mergeKey: string): boolean {
  const indexA = indexIn(order, a, mergeKey);
  const indexB = indexIn(order, b, mergeKey);
  return indexA >= 0 && indexB >= 0 ? indexA < indexB : true;
}

function interleave(left: Items, right: Items, liveOrder: Items, mergeKey: string): unknown[] {
  const result: unknown[] = [];
  let l = 0;
  let r = 0;
  while (l < left.length && r < right.length) {
    const indexL = indexIn(liveOrder, left[l], mergeKey);
    const indexR = indexIn(liveOrder, right[r], mergeKey);
    if (indexL >= 0 && indexR >= 0 && indexL < indexR) result.push(left[l++]);
    else result.push(right[r++]);
  }
  return [...result, ...left.slice(l), ...right.slice(r)];
}
