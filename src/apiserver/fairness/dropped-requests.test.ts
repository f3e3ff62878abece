import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { DroppedRequests } from "./dropped-requests.ts";

t.test("DroppedRequests doubles Retry-After while many requests are rejected, and lowers it by a second", async (t) => {
  const clock = new FakeClock();
  const dropped = new DroppedRequests(clock);
  const reject = (count: number): number => {
    let seconds = 0;
    for (let index = 0; index < count; index++) seconds = dropped.record("low");
    return seconds;
  };
  t.equal(reject(3), 1, "the first second");
  const seen: number[] = [];
  for (let second = 0; second < 70; second++) {
    await clock.advance(1000);
    seen.push(reject(100));
  }
  t.same([...new Set(seen)], [2, 4, 8, 16, 32], "as long as the previous delay each");
  t.equal(dropped.record("high"), 1, "levels are independent");
  await clock.advance(60_000);
  t.equal(reject(1), 31);
  await clock.advance(1000);
  t.equal(reject(1), 30);
});
