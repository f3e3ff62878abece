import t from "tap";
import { DEFAULT_BUCKETS, exponentialBuckets } from "./buckets.ts";

t.test("bounds are multiplied one by one, so that they have Go's digits", async (t) => {
  t.same(exponentialBuckets(1, 2, 5), [1, 2, 4, 8, 16]);
  t.same(exponentialBuckets(0.00001, 1.5, 3), [0.00001, 0.000015000000000000002, 0.000022500000000000005]);
  t.equal(DEFAULT_BUCKETS.length, 11);
});
