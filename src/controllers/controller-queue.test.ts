import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { conflict } from "../api/status.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { systemClock } from "../std/time/clock.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { createControllerQueue, RATE_LIMITER } from "./controller-queue.ts";

/** The seconds between the syncs of a key that always fails. */
async function retriesOf(error: Error): Promise<readonly number[]> {
  const clock = new FakeClock();
  const times: number[] = [];
  await using queue = createControllerQueue(
    { clock, random: seededRandom(1) },
    {
      name: "test",
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

t.test("a turn of the event loop has one long sync of all controllers", async (t) => {
  await nextTurn();
  let turn = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; turn++) await nextTurn();
  })();
  const turns: number[] = [];
  const sync = async (): Promise<void> => {
    turns.push(turn);
    const began = performance.now();
    while (performance.now() - began < 25);
  };
  const deps = { clock: systemClock, random: seededRandom(1) };
  const options = { name: "test", workers: 5, sync, onError: (key: string) => void t.fail(key) };
  await using one = createControllerQueue(deps, options);
  await using other = createControllerQueue(deps, options);
  for (const queue of [one, other]) for (const key of ["a", "b", "c"]) queue.add(key);
  await Promise.all([one.idle(), other.idle()]);
  isOver = true;
  await counting;
  t.equal(new Set(turns).size, 6);
});
