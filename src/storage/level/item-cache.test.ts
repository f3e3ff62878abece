import t from "tap";
import type { KeyValue, Revision } from "../store.ts";
import { ItemCache } from "./item-cache.ts";

function item(key: string, bytes = 1, modified = 2): KeyValue {
  return { key, value: new Uint8Array(bytes), modified: modified as Revision, created: 2 as Revision };
}

t.test("ItemCache returns the latest item of each key, and none for a deleted key", async (t) => {
  const cache = new ItemCache();
  cache.set(item("/a"));
  cache.set(item("/a", 1, 3));
  cache.set(item("/b"));
  cache.delete("/b");
  cache.delete("/c");
  t.equal(cache.get("/a")?.modified, 3);
  t.equal(cache.get("/b"), undefined);
  cache.clear();
  t.equal(cache.get("/a"), undefined);
});

t.test("ItemCache evicts the oldest items first", async (t) => {
  for (const [count, bytes, kept] of [
    [4097, 1, 4096],
    [5, 2 ** 20, 4],
  ] as const) {
    const cache = new ItemCache();
    for (let i = 0; i < count; i++) cache.set(item(`/${i}`, bytes));
    t.equal(cache.get("/0"), undefined);
    t.equal(cache.get(`/${count - kept}`)?.key, `/${count - kept}`);
    // The bytes of an evicted item are not counted.
    cache.set(item(`/${count - 1}`, bytes, 9));
    t.equal(cache.get(`/${count - kept}`)?.key, `/${count - kept}`);
  }
  const cache = new ItemCache();
  cache.set(item("/big", 2 ** 22 + 1));
  t.equal(cache.get("/big"), undefined, "an item above the limit is not cached");
});
