import t from "tap";
import { isSameItem, orderItems } from "./element-order.ts";

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
