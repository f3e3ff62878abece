import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ExpiringCache } from "./expiring-cache.ts";

t.test("ExpiringCache drops expired entries, and the least recently used one when it is full", async (t) => {
  const clock = new FakeClock();
  const cache = new ExpiringCache<number>(2, clock);
  cache.set("a", 1, 100);
  cache.set("b", 2, 1000);
  t.equal(cache.get("a"), 1);
  cache.set("c", 3, 1000);
  t.same([cache.get("a"), cache.get("b"), cache.get("c")], [1, undefined, 3]);
  await clock.advance(100);
  t.same([cache.get("a"), cache.get("c"), cache.size], [undefined, 3, 1]);
  cache.set("c", 4, 0);
  t.equal(cache.get("c"), undefined, "what lasts no time is not kept, and neither is what was there before");
});
