import { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { bytesLeftPerCall } from "../../testing/std/heap-growth.ts";
import { JoinedMessage } from "./joined-message.ts";

function many<T>(count: number, create: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => create(index));
}

/** As the parser calls it. Whether the message accepts more. */
function pushAll(message: JoinedMessage, chunks: readonly Buffer[]): boolean {
  return chunks.map((chunk) => message.push(chunk)).at(-1) ?? true;
}

t.test("JoinedMessage returns all bytes in their order, for a reader that is early, late or interrupted", async (t) => {
  const chunks = many(3000, (index) => Buffer.alloc(index % 50 === 0 ? 2000 : index % 7, index % 251));
  const expected = Buffer.concat(chunks);
  const message = () => new JoinedMessage(new Socket());
  const readAll = async (from: JoinedMessage): Promise<Buffer> => {
    const found: Buffer[] = [];
    for await (const chunk of from) found.push(chunk as Buffer);
    return Buffer.concat(found);
  };
  const late = message();
  pushAll(late, chunks);
  late.push(null);
  t.ok((await readAll(late)).equals(expected), "late");
  const early = message();
  const reading = readAll(early);
  for (const [index, chunk] of chunks.entries()) {
    early.push(chunk);
    if (index % 500 === 0) await nextTurn();
  }
  early.push(null);
  t.ok((await reading).equals(expected), "early");
  const flowing = message();
  const found: Buffer[] = [];
  flowing.on("data", (chunk: Buffer) => found.push(chunk));
  for (const [index, chunk] of chunks.entries()) {
    flowing.push(chunk);
    if (index % 100 === 0) flowing.pause();
    if (index % 100 === 50) flowing.resume();
    if (index % 10 === 0) await nextTurn();
  }
  flowing.push(null);
  flowing.resume();
  await nextTurn();
  await nextTurn();
  t.ok(Buffer.concat(found).equals(expected), "interrupted");
});

t.test("JoinedMessage passes a chunk on at once when the reader waits, and joins those of the same turn", async (t) => {
  const message = new JoinedMessage(new Socket());
  const lengths: number[] = [];
  message.on("data", (chunk: Buffer) => lengths.push(chunk.length));
  await nextTurn();
  message.push(Buffer.from("a"));
  t.same(lengths, [1]);
  await nextTurn();
  pushAll(
    message,
    many(1000, () => Buffer.from("b")),
  );
  await nextTurn();
  t.same(lengths, [1, 1, 999]);
});

t.test("JoinedMessage stops its connection after some chunks and bytes that are not read", async (t) => {
  const messages: JoinedMessage[] = [];
  const count = (bytes: number): number => {
    const message = new JoinedMessage(new Socket());
    let chunks = 1;
    while (message.push(Buffer.alloc(bytes))) chunks++;
    return chunks;
  };
  t.equal(count(1), 1024);
  t.equal(count(1000), Math.ceil(new JoinedMessage(new Socket()).readableHighWaterMark / 1000));
  const message = new JoinedMessage(new Socket());
  const read: number[] = [];
  message.on("data", (chunk: Buffer) => read.push(chunk.length));
  for (let round = 0; round < 3; round++) {
    await nextTurn();
    for (let more = true; more; ) more = message.push(Buffer.from("x"));
  }
  await nextTurn();
  t.equal(
    read.reduce((sum, length) => sum + length, 0),
    3 * 1025,
    "again, once they are read",
  );
  const left = await bytesLeftPerCall(
    () => {
      const message = new JoinedMessage(new Socket());
      messages.push(message);
      // Each is cut from the memory of a read.
      for (let read = 0; read < 20; read++) {
        const bytes = Buffer.alloc(64 * 1024);
        for (let at = 0; at < 2000; at++) message.push(bytes.subarray(at, at + 1));
      }
    },
    { calls: 10 },
  );
  t.ok(left < 160_000, `${left} bytes for 40,000`);
});
