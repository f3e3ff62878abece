import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { FailedPodsBackoff } from "./failed-pods-backoff.ts";

t.test("FailedPodsBackoff doubles the delay of a node with each failure, up to 15 minutes", async (t) => {
  const clock = new FakeClock();
  const backoff = new FailedPodsBackoff(clock);
  t.equal(backoff.next("a"), 0, "the first failure is handled at once");
  const delays: number[] = [];
  for (let failures = 0; failures < 12; failures++) {
    const delay = backoff.next("a");
    delays.push(delay / 1000);
    await clock.advance(delay);
    t.equal(backoff.next("a"), 0, `handled after ${delay} ms`);
  }
  t.same(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  t.equal(backoff.next("b"), 0, "another node has its own");
});

t.test("FailedPodsBackoff forgets a node half an hour after its last failure", async (t) => {
  const clock = new FakeClock();
  const backoff = new FailedPodsBackoff(clock);
  backoff.next("a");
  await clock.advance(2000);
  t.equal(backoff.next("a"), 0);
  t.equal(backoff.next("a"), 2000);
  await clock.advance(30 * 60_000 + 1);
  t.equal(backoff.next("a"), 0);
  t.equal(backoff.next("a"), 1000);
});
