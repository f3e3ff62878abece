import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { seededRandom } from "../crypto/random.ts";
import { MetricRegistry } from "../metrics/metrics.ts";
import { createQueueMetrics } from "../metrics/queue-metrics.ts";
import { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";

/** Work that a test finishes. */
class Gate {
  readonly started: string[] = [];
  readonly #finish = new Map<string, (error?: Error) => void>();

  readonly work = (key: string, signal: AbortSignal): Promise<void> => {
    this.started.push(key);
    return new Promise((resolve, reject) => {
      this.#finish.set(key, (error) => (error === undefined ? resolve() : reject(error)));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };

  async finish(key: string, error?: Error): Promise<void> {
    this.#finish.get(key)!(error);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function setUp(options: Partial<WorkQueueOptions> = {}) {
  const gate = new Gate();
  const clock = new FakeClock();
  const errors: string[] = [];
  const queue = new WorkQueue({
    clock,
    random: seededRandom(1),
    concurrency: 2,
    backoff: { initialMs: 100, maxMs: 1000 },
    work: gate.work,
    onError: (key, error) => errors.push(`${key}: ${(error as Error).message}`),
    ...options,
  });
  return { gate, clock, errors, queue };
}

t.test("WorkQueue.add() bounds concurrency and queues a key once", async (t) => {
  const { gate, queue } = setUp();
  for (const key of ["a", "b", "c", "c", "d", "c"]) queue.add(key);
  t.same(gate.started, ["a", "b"]);
  t.equal(queue.size, 4);
  await gate.finish("a");
  await gate.finish("b");
  t.same(gate.started, ["a", "b", "c", "d"]);
  await gate.finish("c");
  await gate.finish("d");
  await queue.idle();
  t.equal(queue.size, 0);
  t.same(gate.started.length, 4);
});

t.test("WorkQueue.add() while the key is worked on runs it once more, never twice at once", async (t) => {
  const { gate, queue } = setUp();
  queue.add("a");
  queue.add("a");
  queue.add("a");
  t.same(gate.started, ["a"]);
  await gate.finish("a");
  t.same(gate.started, ["a", "a"]);
  await gate.finish("a");
  await queue.idle();
  t.same(gate.started, ["a", "a"]);
});

t.test("WorkQueue retries failed work after a growing delay, which success resets", async (t) => {
  const { gate, clock, errors, queue } = setUp();
  queue.add("a");
  await gate.finish("a", new Error("one"));
  await clock.advance(99);
  t.equal(gate.started.length, 1);
  await clock.advance(1);
  t.equal(gate.started.length, 2);
  await gate.finish("a", new Error("two"));
  await clock.advance(199);
  t.equal(gate.started.length, 2);
  await clock.advance(1);
  await gate.finish("a");
  t.same(errors, ["a: one", "a: two"]);
  queue.add("a");
  await gate.finish("a", new Error("three"));
  t.equal(clock.untilNext, 100);
  await queue[Symbol.asyncDispose]();
  t.equal(clock.pending, 0);
});

t.test("WorkQueue.addAfter() keeps the earliest time, and add() overtakes it", async (t) => {
  const { gate, clock, queue } = setUp();
  queue.addAfter("a", 500);
  queue.addAfter("a", 300);
  queue.addAfter("a", 400);
  await clock.advance(300);
  t.same(gate.started, ["a"]);
  t.equal(clock.pending, 0);
  await gate.finish("a");
  queue.addAfter("b", 500);
  queue.add("b");
  queue.addAfter("c", 0);
  t.same(gate.started, ["a", "b", "c"]);
  t.equal(clock.pending, 0);
  await gate.finish("b");
  await gate.finish("c");
});

t.test("WorkQueue.forget() drops what waits and what would be retried", async (t) => {
  const { gate, clock, queue } = setUp({ concurrency: 1 });
  queue.add("a");
  queue.add("b");
  queue.addAfter("c", 10);
  for (const key of ["a", "b", "c"]) queue.forget(key);
  await gate.finish("a", new Error("gone"));
  await queue.idle();
  t.same(gate.started, ["a"]);
  t.equal(clock.pending, 0);
});

t.test("WorkQueue disposal aborts running work and takes no more", async (t) => {
  const { gate, errors, queue } = setUp();
  queue.add("a");
  queue.add("b");
  queue.add("c");
  await queue[Symbol.asyncDispose]();
  queue.add("d");
  queue.addAfter("e", 1);
  t.same(gate.started, ["a", "b"]);
  t.same(errors, []);
  t.equal(queue.size, 0);
});

t.test("WorkQueue records depth, queue duration, work duration and retries", async (t) => {
  const clock = new FakeClock();
  const metrics = createQueueMetrics(new MetricRegistry())("q");
  let fails = true;
  await using queue = new WorkQueue({
    clock,
    random: seededRandom(1),
    concurrency: 1,
    backoff: { initialMs: 1000, maxMs: 1000, jitter: 0 },
    metrics,
    work: async () => {
      await clock.sleep(200);
      if (fails) throw new Error("not yet");
    },
    onError: () => {
      fails = false;
    },
  });
  queue.add("a");
  queue.add("b");
  queue.add("b");
  t.equal(metrics.depth.value, 1, "one of them is worked on");
  await clock.advance(200);
  t.equal(metrics.retries.value, 1);
  await clock.advance(2000);
  t.equal(metrics.depth.value, 0);
  t.equal(metrics.adds.value, 3, "a once more");
  t.equal(Number(metrics.workDuration.sum.toFixed(3)), 0.6);
  t.equal(Number(metrics.queueDuration.sum.toFixed(3)), 0.2, "b waited for a");
});
