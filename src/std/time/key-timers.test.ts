import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { seededRandom } from "../crypto/random.ts";
import { KeyTimers } from "./key-timers.ts";

t.test("DueTimes tells of each key at its time, on one timer", async (t) => {
  const clock = new FakeClock();
  const told: string[] = [];
  using times = new KeyTimers(clock, (key) => told.push(`${key} ${clock.monotonic()}`));
  times.set("c", 300);
  times.set("a", 100);
  times.set("b", 200);
  times.set("never", 150);
  t.ok(times.delete("never"));
  t.notOk(times.delete("never"));
  t.equal(clock.pending, 1);
  await clock.advance(1_000);
  t.same(told, ["a 100", "b 200", "c 300"]);
  t.equal(times.size, 0);
  t.equal(clock.pending, 0);
});

t.test("DueTimes lets keys be put off, and be called earlier", async (t) => {
  const clock = new FakeClock();
  const told: string[] = [];
  using times = new KeyTimers(clock, (key) => told.push(`${key} ${clock.monotonic()}`));
  times.set("beats", 40);
  for (let beat = 0; beat < 10; beat++) {
    await clock.advance(30);
    times.set("beats", 40);
  }
  t.same(told, []);
  times.set("early", 1_000);
  times.set("early", 10);
  await clock.advance(100);
  t.same(told, ["early 310", "beats 340"]);
});

t.test("DueTimes keeps the order of any number of keys", async (t) => {
  const clock = new FakeClock();
  const random = seededRandom(7);
  const told: number[] = [];
  using times = new KeyTimers(clock, () => told.push(clock.monotonic()));
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
    told,
    [...at.values()].sort((a, b) => a - b),
  );
});
