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

for (const hours of [-6, 6]) {
  t.test(`values live as long as requested when the host's clock is set by ${hours} hours`, async (t) => {
    const start = Date.UTC(2026, 0, 1);
    const clock = new FakeClock(start);
    const expired: string[] = [];
    const expiry = new Expiry(clock, (due) => expired.push(...due.map(({ key }) => key)));
    expiry.schedule("/before", 1 as Revision, start + 60_000);
    await clock.advance(10_000);
    clock.set(clock.now() + hours * 3_600_000);
    expiry.schedule("/after", 2 as Revision, clock.now() + 60_000);
    await clock.advance(49_000);
    t.same(expired, []);
    await clock.advance(1000);
    t.same(expired, ["/before"]);
    await clock.advance(10_000);
    t.same(expired, ["/before", "/after"]);
    t.equal(clock.pending, 0);
  });
}
