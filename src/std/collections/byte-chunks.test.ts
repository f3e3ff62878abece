import t from "tap";
import { bytesLeftPerCall } from "../../testing/std/heap-growth.ts";
import { ByteChunks } from "./byte-chunks.ts";

t.test("concat() returns the bytes of chunks of all lengths in their order", async (t) => {
  for (const lengths of [[], [0], [5], [70_000], [1, 2000, 1, 1, 0, 3000, 1], many(50_000, (n) => n % 3)]) {
    const chunks = lengths.map((length, index) => Buffer.alloc(length, index % 251));
    const collected = new ByteChunks();
    for (const chunk of chunks) collected.add(chunk);
    t.equal(collected.length, Buffer.concat(chunks).length);
    t.ok(collected.concat().equals(Buffer.concat(chunks)), `${lengths.length} chunks`);
  }
  const mixed = many(3000, (n) => Buffer.alloc(n % 7 === 0 ? 1500 : n % 40, n % 251));
  const collected = new ByteChunks();
  for (const chunk of mixed) collected.add(chunk);
  t.ok(collected.concat().equals(Buffer.concat(mixed)), "small and large ones");
});

t.test("concat() returns the only chunk without a copy", async (t) => {
  const collected = new ByteChunks();
  const chunk = Buffer.from("abc");
  collected.add(chunk);
  t.equal(collected.concat().buffer, chunk.buffer);
});

t.test("chunks of one byte take little more memory than the bytes", async (t) => {
  const kept: ByteChunks[] = [];
  const collect = async () => {
    const collected = new ByteChunks();
    // Each is cut from the memory of a read, as by the HTTP parser.
    for (let read = 0; read < 10; read++) {
      const bytes = Buffer.alloc(64 * 1024);
      for (let at = 0; at < 4096; at++) collected.add(bytes.subarray(at, at + 1));
    }
    kept.push(collected);
  };
  const left = await bytesLeftPerCall(collect, { calls: 20 });
  t.ok(left < 600_000, `${left} bytes for 40,960`);
});

function many<T>(count: number, create: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => create(index));
}
