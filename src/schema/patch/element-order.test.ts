import fc from "fast-check";
import t from "tap";
import { deepEqual } from "../value/equal.ts";
import { orderItems } from "./element-order.ts";
import { isSameItem } from "./item-identity.ts";

t.test("orderItems() sorts patched items by the patch's order and keeps the others in live order", async (t) => {
  const letters = (text: string) => [...text];
  const cases: readonly (readonly [string, string, string, string])[] = [
    ["abcd", "ca", "abcd", "bcad"],
    ["abcd", "", "abcd", "abcd"],
    ["abx", "x", "ab", "xab"],
    ["dcba", "abcd", "abcd", "abcd"],
  ];
  for (const [merged, patch, live, result] of cases) {
    t.equal(orderItems(letters(merged), letters(patch), letters(live), "").join(""), result);
  }
});

t.test("isSameItem() compares merge keys, or values without one", async (t) => {
  t.ok(isSameItem({ name: "a", x: 1 }, { name: "a", x: 2 }, "name"));
  t.notOk(isSameItem({ name: "a" }, { name: "b" }, "name"));
  t.notOk(isSameItem("a", { name: "a" }, "name"));
  t.ok(isSameItem(1, 1, ""));
});

/** The insertion sort of Kubernetes, which compares each item with each. */
function insertionSort(items: readonly unknown[], order: readonly unknown[]): unknown[] {
  const result: unknown[] = [];
  const precedes = (a: unknown, b: unknown): boolean => {
    const [indexA, indexB] = [order.indexOf(a), order.indexOf(b)];
    return indexA >= 0 && indexB >= 0 ? indexA < indexB : true;
  };
  for (const item of items) {
    let at = result.length;
    while (at > 0 && precedes(item, result[at - 1])) at--;
    result.splice(at, 0, item);
  }
  return result;
}

t.test("orderItems() sorts as Kubernetes' insertion sort does, unknown items included", async (t) => {
  const letters = fc.array(fc.constantFrom(..."abcdefgh"), { maxLength: 12 });
  fc.assert(
    fc.property(letters, letters, (items, order) => {
      const sorted = insertionSort(items, order);
      if (!deepEqual(orderItems(items, [], order, ""), sorted)) t.same(orderItems(items, [], order, ""), sorted);
    }),
  );
});
