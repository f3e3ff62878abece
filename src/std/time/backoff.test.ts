import t from "tap";
import { seededRandom } from "../crypto/random.ts";
import { Backoff } from "./backoff.ts";

t.test("Backoff.next() grows to its cap and starts again after reset()", async (t) => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 500 }, seededRandom(1));
  t.same([backoff.next(), backoff.next(), backoff.next(), backoff.next(), backoff.next()], [100, 200, 400, 500, 500]);
  backoff.reset();
  t.equal(backoff.next(), 100);
});

t.test("Backoff.next() adds jitter up to its share", async (t) => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 100, jitter: 0.5 }, seededRandom(7));
  const delays = Array.from({ length: 200 }, () => backoff.next());
  t.ok(Math.min(...delays) >= 100 && Math.max(...delays) < 150);
  t.ok(Math.max(...delays) - Math.min(...delays) > 40, "spread out");
});
