import t from "tap";
import { settleInBatches } from "./settle-in-batches.ts";

t.test("settleInBatches() calls for each item, a bounded number at a time, and keeps the order", async (t) => {
  let running = 0;
  let most = 0;
  const items = Array.from({ length: 1050 }, (_, index) => index);
  const results = await settleInBatches(items, async (item) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (item % 100 === 7) throw new Error(`item ${item}`);
  });
  t.equal(most, 100);
  t.equal(results.length, items.length);
  const failed = results.flatMap((result, index) => (result.status === "rejected" ? [[index, result.reason]] : []));
  t.equal(failed.length, 11);
  t.ok(failed.every(([index, reason]) => String(reason) === `Error: item ${index}`));
  t.same(await settleInBatches([], async () => {}), []);
});
