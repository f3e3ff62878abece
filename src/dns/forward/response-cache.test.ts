import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { UpstreamResponse } from "../wire/upstream-response.ts";
import { ResponseCache } from "./response-cache.ts";

function response(ttl: number, overrides: Partial<UpstreamResponse> = {}): UpstreamResponse {
  return {
    rcode: 0,
    truncated: false,
    bytes: Buffer.alloc(100),
    questionEnd: 30,
    counts: [1, 0, 0],
    positions: new Uint16Array(2),
    ttl,
    ...overrides,
  };
}

t.test("ResponseCache returns responses until they expire, then as stale ones for a day", async (t) => {
  const clock = new FakeClock();
  const cache = new ResponseCache(clock);
  cache.set("a", response(10));
  await clock.advance(9999);
  t.match(cache.get("a"), { ageSeconds: 9, isFresh: true });
  await clock.advance(1);
  t.match(cache.get("a"), { ageSeconds: 10, isFresh: false });
  await clock.advance(86_400_000);
  t.equal(cache.get("a"), undefined);
  t.equal(cache.size, 0);
});

t.test("ResponseCache limits lifetimes, and keeps no response without one", async (t) => {
  const clock = new FakeClock();
  const cache = new ResponseCache(clock);
  cache.set("zero", response(0));
  t.equal(cache.get("zero"), undefined);
  cache.set("long", response(100_000));
  cache.set("missing", response(3600, { rcode: 3, counts: [0, 1, 0] }));
  cache.set("empty", response(3600, { counts: [0, 1, 0] }));
  const fresh = () => ["long", "missing", "empty"].filter((key) => cache.get(key)?.isFresh);
  await clock.advance(29_000);
  t.same(fresh(), ["long", "missing", "empty"]);
  await clock.advance(1000);
  t.same(fresh(), ["long"]);
  await clock.advance(3_570_000);
  t.same(fresh(), []);
});

t.test("ResponseCache is bounded in bytes and keeps what is used", async (t) => {
  const cache = new ResponseCache(new FakeClock(), 100_000);
  cache.set("used", response(60));
  for (let i = 0; i < 1000; i++) {
    cache.set(`k${i}`, response(60));
    cache.get("used");
  }
  t.ok(cache.size < 200 && cache.size > 80, `${cache.size} entries`);
  t.ok(cache.get("used"));
  cache.set("used", response(90));
  t.equal(cache.get("used")?.response.ttl, 90);
  cache.clear();
  t.equal(cache.size, 0);
});
