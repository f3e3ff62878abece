import t from "tap";
import { conflict } from "../api/status.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { createControllerQueue, RATE_LIMITER } from "./controller-queue.ts";

/** The seconds between the syncs of a key that always fails. */
async function retriesOf(error: Error): Promise<readonly number[]> {
  const clock = new FakeClock();
  const times: number[] = [];
  await using queue = createControllerQueue(
    { clock, random: seededRandom(1) },
    {
      workers: 1,
      backoff: RATE_LIMITER,
      sync: async () => {
        times.push(clock.monotonic());
        throw error;
      },
      onError: () => {},
    },
  );
  queue.add("a");
  for (let seconds = 0; seconds < 200; seconds++) await clock.advance(1000);
  return times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1000);
}

t.test("createControllerQueue() retries after an error response with growing delays", async (t) => {
  const delays = await retriesOf(conflict({ group: "", resource: "pods", name: "a" }, "changed"));
  t.same(delays.slice(0, 4), [0.005, 0.01, 0.02, 0.04]);
  t.same(delays.slice(-3), [20.48, 40.96, 81.92]);
});

t.test("createControllerQueue() retries at least every 30 s without a response", async (t) => {
  const delays = await retriesOf(new Error("connect ECONNREFUSED"));
  t.same(delays.slice(0, 4), [0.005, 0.01, 0.02, 0.04]);
  t.same(delays.slice(11, 15), [10.24, 20.48, 30, 30]);
});
