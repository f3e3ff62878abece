import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { TokenBucket } from "./token-bucket.ts";

t.test("a TokenBucket has its burst at once and one more token after each interval", async (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 2, 3);
  t.same([bucket.take(), bucket.take(), bucket.take(), bucket.take()], [true, true, true, false]);
  t.equal(bucket.waitMs, 500);
  await clock.advance(500);
  t.equal(bucket.waitMs, 0);
  t.same([bucket.take(), bucket.take()], [true, false]);
});

t.test("an idle TokenBucket holds no more than its burst", async (t) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, 1, 2);
  await clock.advance(60_000);
  t.same([bucket.take(), bucket.take(), bucket.take()], [true, true, false]);
});
