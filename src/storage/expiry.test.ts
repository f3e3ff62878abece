import t from "tap";
import { seededRandom } from "../std/crypto/random.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { Expiry } from "./expiry.ts";
import type { Revision } from "./store.ts";

t.test("Expiry reports expired values in order, at most a second late, with one timer", async (t) => {
  const clock = new FakeClock(0);
  const random = seededRandom(5);
  const expired: { at: number; now: number }[] = [];
  const expiry = new Expiry(clock, (due) => {
    for (const { revision } of due) expired.push({ at: times[revision]!, now: clock.now() });
  });
  const times = Array.from({ length: 500 }, () => Math.floor(random.fraction() * 100_000));
  for (const [i, at] of times.entries()) expiry.schedule(`/${i}`, i as Revision, at);
  t.equal(clock.pending, 1);
  await clock.advance(101_000);
  t.same(
    expired.map(({ at }) => at),
    times.toSorted((a, b) => Math.ceil(a / 1000) - Math.ceil(b / 1000)),
    "of one second in the order in which they were added",
  );
  t.ok(expired.every(({ at, now }) => now >= at && now - at < 1000));
  t.equal(clock.pending, 0);
  expiry.schedule("/x", 1 as Revision, 200_000);
  expiry.close();
  t.equal(clock.pending, 0);
});
