/** The order of a merged list: what the patch says first, else what the list had, and the two interleaved. */
import { deepEqual } from "../value/equal.ts";
import { isPlainObject } from "../value/plain-object.ts";

type Items = readonly unknown[];

/** Whether two items are the same one: by their merge key, or by value where there is none. */
export function isSameItem(a: unknown, b: unknown, mergeKey: string): boolean {
  if (mergeKey === "") return deepEqual(a, b);
  return isPlainObject(a) && isPlainObject(b) && deepEqual(a[mergeKey], b[mergeKey]);
}

function indexIn(order: Items, item: unknown, mergeKey: string): number {
  return order.findIndex((candidate) => isSameItem(candidate, item, mergeKey));
}

/**
 * `patchOrder` rules the items it names, `liveOrder` all others. The two are then interleaved from the left: the next
 * live-only item is taken when it stood before the next patched one in the live list, else the patched one. Live
 * `a b c d` patched in the order `c a` becomes `b c a d`.
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

/** Insertion sort; an item that `order` does not name moves to the front, as in Kubernetes. */
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
  const placeA = indexIn(order, a, mergeKey);
  const placeB = indexIn(order, b, mergeKey);
  return placeA >= 0 && placeB >= 0 ? placeA < placeB : true;
}

function interleave(left: Items, right: Items, liveOrder: Items, mergeKey: string): unknown[] {
  const result: unknown[] = [];
  let l = 0;
  let r = 0;
  while (l < left.length && r < right.length) {
    const placeL = indexIn(liveOrder, left[l], mergeKey);
    const placeR = indexIn(liveOrder, right[r], mergeKey);
    if (placeL >= 0 && placeR >= 0 && placeL < placeR) result.push(left[l++]);
    else result.push(right[r++]);
  }
  return [...result, ...left.slice(l), ...right.slice(r)];
}
