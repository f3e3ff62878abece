import t from "tap";
import type { KeyValue, Revision } from "../store.ts";
import { ItemCache } from "./item-cache.ts";

function item(key: string, bytes = 1, modified = 2): KeyValue {
  return { key, value: new Uint8Array(bytes), modified: modified as Revision, created: 2 as Revision };
}

t.test("ItemCache returns the latest item of each key, and none for a deleted key", async (t) => {
  const known = new ItemCache();
  known.set(item("/a"));
  known.set(item("/a", 1, 3));
  known.set(item("/b"));
  known.delete("/b");
  known.delete("/c");
  t.equal(known.get("/a")?.modified, 3);
  t.equal(known.get("/b"), undefined);
  known.clear();
  t.equal(known.get("/a"), undefined);
});

t.test("ItemCache evicts the oldest items first", async (t) => {
  for (const [count, bytes, kept] of [
    [4097, 1, 4096],
    [5, 2 ** 20, 4],
  ] as const) {
    const known = new ItemCache();
    for (let i = 0; i < count; i++) known.set(item(`/${i}`, bytes));
    t.equal(known.get("/0"), undefined);
    t.equal(known.get(`/${count - kept}`)?.key, `/${count - kept}`);
    // The bytes of an evicted item are not counted.
    known.set(item(`/${count - 1}`, bytes, 9));
    t.equal(known.get(`/${count - kept}`)?.key, `/${count - kept}`);
  }
  const known = new ItemCache();
  known.set(item("/big", 2 ** 22 + 1));
  t.equal(known.get("/big"), undefined, "an item above the limit is not cached");
});
