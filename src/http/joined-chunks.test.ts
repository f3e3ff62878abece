import { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import t from "tap";
import { systemClock } from "../std/time/clock.ts";
import { JoinedChunks } from "./joined-chunks.ts";
import { writeBody } from "./server/write-body.ts";
import { readValues, wrapStream } from "./value-stream.ts";

const KIB = 1024;
const CHUNK = 64 * KIB;

/** Parts of the given lengths, each byte of which differs from its neighbours. */
function partsOf(...lengths: readonly number[]): readonly Buffer[] {
  let at = 0;
  return lengths.map((length) => Buffer.from(Uint8Array.from({ length }, () => at++ % 251)));
}

const cases: Readonly<Record<string, readonly number[]>> = {
  "no parts": [],
  "empty parts": [0, 0],
  "one small part": [10],
  "exactly one chunk": [CHUNK],
  "a part that ends at the end of a chunk": [CHUNK - 10, 10, 7],
  "a part over the end of a chunk": [CHUNK - 10, 11, 0, 5],
  "a part of several chunks": [3, 3 * CHUNK + 5, 1],
  "many parts": Array.from({ length: 3000 }, (_, i) => i % 97),
};

for (const [name, lengths] of Object.entries(cases)) {
  t.test(`JoinedChunks have the bytes of ${name}`, async (t) => {
    const parts = partsOf(...lengths);
    const whole = Buffer.concat(parts);
    const sizes: number[] = [];
    for await (const { length } of new JoinedChunks(parts)) sizes.push(length);
    t.ok(sizes.slice(0, -1).every((size) => size === CHUNK) && (sizes.at(-1) ?? 1) > 0, "whole chunks but the last");
    t.ok((await buffer(new JoinedChunks(parts))).equals(whole), "chunks can be kept");
    t.ok((await written(new JoinedChunks(parts))).equals(whole), "written from one buffer");
    let bytes = 0;
    const counted = wrapStream(new JoinedChunks(parts), async function* <V>(stream: AsyncIterable<V>) {
      for await (const chunk of stream) {
        bytes += (chunk as Uint8Array).length;
        yield chunk;
      }
    });
    t.type(counted, JoinedChunks);
    t.ok((await written(counted)).equals(whole), "written from one buffer through a wrapper");
    t.equal(bytes, whole.length);
  });
}

t.test("values() has the values instead of the chunks, wrapped as they are", async (t) => {
  t.equal(readValues(new JoinedChunks(partsOf(1))), undefined);
  async function* values(): AsyncGenerator<unknown> {
    yield* [{ a: 1 }, "b"];
  }
  const wrapped: unknown[] = [];
  const body = wrapStream(new JoinedChunks(partsOf(1), values), async function* <V>(stream: AsyncIterable<V>) {
    for await (const value of stream) {
      wrapped.push(value);
      yield value;
    }
  });
  const read: unknown[] = [];
  for await (const value of readValues(body) ?? []) read.push(value);
  t.same(
    [read, wrapped],
    [
      [{ a: 1 }, "b"],
      [{ a: 1 }, "b"],
    ],
  );
});

t.test("inOneBuffer() creates one buffer", async (t) => {
  const chunks = new JoinedChunks(partsOf(5 * CHUNK)).inOneBuffer();
  const buffers = new Set<unknown>();
  for (let step = await chunks.next(); step.done !== true; step = await chunks.next()) buffers.add(step.value.buffer);
  t.equal(buffers.size, 1);
});

/** Writes the body to a sink that reads each chunk only when it is flushed, a few turns later. */
async function written(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    highWaterMark: 2 ** 30,
    write: (chunk: Buffer, _, done) => {
      setImmediate(() => {
        chunks.push(Buffer.from(chunk));
        done();
      });
    },
  });
  const ended = new Promise((resolve) => sink.once("finish", resolve));
  await writeBody(sink, body, { clock: systemClock, stallTimeoutMs: 60_000 });
  await ended;
  return Buffer.concat(chunks);
}
