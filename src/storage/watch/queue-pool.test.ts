import t from "tap";
import { type Queued, QueuePool, type SlowReader } from "./queue-pool.ts";

class Reader implements SlowReader {
  readonly #pool: QueuePool;
  #queue: Queued[] = [];
  closed = false;
  queuedBytes = 0;

  constructor(pool: QueuePool) {
    this.#pool = pool;
  }

  push(event: Queued): void {
    this.#queue.push(event);
    this.queuedBytes += event.size;
    this.#pool.add(this, event);
  }

  overflow(): void {
    this.closed = true;
    this.drain();
  }

  drain(): void {
    for (const event of this.#queue.splice(0)) {
      this.queuedBytes -= event.size;
      this.#pool.remove(this, event);
    }
  }
}

t.test("QueuePool counts an event in several queues once", async (t) => {
  const pool = new QueuePool(100);
  const readers = Array.from({ length: 50 }, () => new Reader(pool));
  const event = { size: 60 };
  for (const reader of readers) reader.push(event);
  t.equal(pool.bytes, 60);
  t.ok(readers.every(({ closed }) => !closed));
  for (const reader of readers) reader.drain();
  t.equal(pool.bytes, 0);
});

t.test("QueuePool closes readers with the largest queue until the rest is below the limit", async (t) => {
  const pool = new QueuePool(100);
  const [slow, slower, quick] = [new Reader(pool), new Reader(pool), new Reader(pool)];
  slow.push({ size: 30 });
  for (let i = 0; i < 4; i++) slower.push({ size: 15 });
  quick.push({ size: 5 });
  quick.push({ size: 10 });
  t.same([slow.closed, slower.closed, quick.closed, pool.bytes], [false, true, false, 45]);
  quick.push({ size: 200 });
  t.same([slow.closed, quick.closed, pool.bytes], [false, true, 30], "it may be the one that is just served");
});
