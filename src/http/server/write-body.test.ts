import { PassThrough, Writable } from "node:stream";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { AbortedStreamError, bodyLength, discardBody, writeBody } from "./write-body.ts";

const clock = new FakeClock();
const timeout = { clock, stallTimeoutMs: 1000 };

class Sink extends Writable {
  readonly chunks: Buffer[] = [];
  #resume: (() => void) | undefined;
  readonly slow: boolean;

  constructor(slow = false) {
    super({ highWaterMark: 1 });
    this.slow = slow;
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.chunks.push(chunk);
    if (this.slow) this.#resume = done;
    else done();
  }

  proceed(): void {
    this.#resume?.();
  }
}

t.test("writeBody() joins small chunks and splits large ones into 64 KiB", async (t) => {
  const sink = new Sink();
  const parts = [
    ...Array.from({ length: 100 }, (_, i) => Buffer.alloc(1000, i)),
    Buffer.alloc(200_000, 7),
    Buffer.alloc(3, 8),
  ];
  t.equal(bodyLength(parts), 300_003);
  await writeBody(sink, parts, timeout);
  t.strictSame(Buffer.concat(sink.chunks), Buffer.concat(parts));
  t.ok(Math.max(...sink.chunks.map((chunk) => chunk.length)) <= 65_536);
  t.ok(sink.chunks.length < 10);
  t.equal(sink.writableEnded, true);
});

t.test("writeBody() reads the next chunk of a source when the last one has been written", async (t) => {
  const sink = new Sink(true);
  let reads = 0;
  const source = (async function* () {
    for (;;) {
      reads++;
      yield Buffer.from("x");
    }
  })();
  const writing = writeBody(sink, source, timeout);
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  t.equal(reads, 1);
  sink.proceed();
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  t.equal(reads, 2);
  sink.destroy();
  await writing;
});

t.test("writeBody() resolves and ends a silent source when the sink closes", async (t) => {
  const sink = new Sink();
  let returned = false;
  const silent: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<never>(() => {}),
      return: async () => {
        returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  const writing = writeBody(sink, silent, timeout);
  sink.destroy();
  await writing;
  t.equal(returned, true);
  t.equal(sink.listenerCount("close"), 0);
});

t.test("writeBody() rejects with the source's error and leaves the sink open", async (t) => {
  const sink = new Sink();
  const failing = (async function* () {
    yield Buffer.from("a");
    throw new Error("broken");
  })();
  await t.rejects(writeBody(sink, failing, timeout), { message: "broken" });
  t.equal(sink.writableEnded, false);
});

t.test("discardBody() ends a source that was never read", async (t) => {
  let ended = false;
  const source: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: true, value: undefined }),
      return: async () => {
        ended = true;
        return { done: true, value: undefined };
      },
    }),
  };
  discardBody(source);
  discardBody(Buffer.from("x"));
  t.equal(ended, true);
  const stream = new PassThrough();
  discardBody(stream);
  t.equal(stream.destroyed, true);
});

t.test(
  "writeBody() rejects with an AbortedStreamError when the sink does not drain, and ends the source",
  async (t) => {
    let ended = false;
    const source = (async function* () {
      try {
        for (;;) yield Buffer.alloc(10);
      } finally {
        ended = true;
      }
    })();
    for (const body of [source, [Buffer.alloc(200_000)]]) {
      const writing = writeBody(new Sink(true), body, timeout);
      const refused = t.rejects(writing, AbortedStreamError);
      await clock.advance(1000);
      await refused;
    }
    t.ok(ended);
    t.equal(clock.pending, 0);
  },
);
