import { PassThrough } from "node:stream";
import t from "tap";
import { readChunks } from "./read-chunks.ts";

/** Lets the source emit what it may. */
const turns = async (): Promise<void> => {
  for (let count = 0; count < 10; count++) await new Promise((resolve) => setImmediate(resolve));
};

t.test("readChunks() passes chunks in order and does not read while a chunk is handled", async (t) => {
  const source = new PassThrough({ highWaterMark: 4 });
  const received: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const reading = readChunks(source, (chunk) => {
    received.push(String(chunk));
    return String(chunk) === "b" ? released : undefined;
  });
  for (const text of ["a", "b", "c"]) source.write(text);
  source.end("d");
  await turns();
  t.same(received, ["a", "b"]);
  release(undefined);
  await reading;
  t.equal(received.join(""), "abcd");
});

t.test("readChunks() ends when the handler returns false, and leaves the rest in the source", async (t) => {
  for (const stop of [false, Promise.resolve(false)]) {
    const source = new PassThrough();
    const reading = readChunks(source, () => stop);
    source.write("a");
    await reading;
    source.write("b");
    await turns();
    t.notOk(source.destroyed);
    t.equal(String(source.read()), "b");
  }
});

t.test("readChunks() rejects with the error of the source or of the handler, after the handler", async (t) => {
  const source = new PassThrough();
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  let isRejected = false;
  const reading = readChunks(source, () => released).catch((error: Error) => {
    isRejected = true;
    return error.message;
  });
  source.write("a");
  await turns();
  source.destroy(new Error("reset"));
  await turns();
  t.notOk(isRejected);
  release(undefined);
  t.equal(await reading, "reset");
  for (const fail of [() => Promise.reject(new Error("late")), () => thrown("now")]) {
    const other = new PassThrough();
    other.write("a");
    await t.rejects(readChunks(other, fail), /late|now/);
  }
});

function thrown(message: string): never {
  throw new Error(message);
}

t.test("readChunks() resolves when the source closes, has closed, or is no stream", async (t) => {
  const source = new PassThrough();
  const reading = readChunks(source, () => undefined);
  source.destroy();
  await reading;
  await readChunks(source, () => undefined);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield* [Buffer.from("a"), Buffer.from("b"), Buffer.from("c")];
  }
  const received: string[] = [];
  await readChunks(chunks(), (chunk) => received.push(String(chunk)) < 2);
  t.same(received, ["a", "b"]);
});
