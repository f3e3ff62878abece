import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { seededRandom } from "../crypto/random.ts";
import { KeyTimers } from "./key-timers.ts";

t.test("KeyTimers reports each key at its time, on one timer", async (t) => {
  const clock = new FakeClock();
  const reported: string[] = [];
  using times = new KeyTimers(clock, (key) => reported.push(`${key} ${clock.monotonic()}`));
  times.set("c", 300);
  times.set("a", 100);
  times.set("b", 200);
  times.set("never", 150);
  t.ok(times.delete("never"));
  t.notOk(times.delete("never"));
  t.equal(clock.pending, 1);
  await clock.advance(1_000);
  t.same(reported, ["a 100", "b 200", "c 300"]);
  t.equal(times.size, 0);
  t.equal(clock.pending, 0);
});

t.test("KeyTimers.set() postpones a key, or makes it due earlier", async (t) => {
  const clock = new FakeClock();
  const reported: string[] = [];
  using times = new KeyTimers(clock, (key) => reported.push(`${key} ${clock.monotonic()}`));
  times.set("beats", 40);
  for (let beat = 0; beat < 10; beat++) {
    await clock.advance(30);
    times.set("beats", 40);
  }
  t.same(reported, []);
  times.set("early", 1_000);
  times.set("early", 10);
  await clock.advance(100);
  t.same(reported, ["early 310", "beats 340"]);
});

t.test("KeyTimers keeps the order of any number of keys", async (t) => {
  const clock = new FakeClock();
  const random = seededRandom(7);
  const reported: number[] = [];
  using times = new KeyTimers(clock, () => reported.push(clock.monotonic()));
  const at = new Map<string, number>();
  for (let round = 0; round < 3_000; round++) {
    const key = `k${Math.floor(random.fraction() * 500)}`;
    const due = Math.floor(random.fraction() * 1_000);
    if (random.fraction() < 0.3) {
      times.delete(key);
      at.delete(key);
    } else {
      times.set(key, due);
      at.set(key, due);
    }
  }
  t.equal(times.size, at.size);
  await clock.advance(2_000);
  t.same(
    reported,
    [...at.values()].sort((a, b) => a - b),
  );
});
