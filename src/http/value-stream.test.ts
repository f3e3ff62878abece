import t from "tap";
import { createValueStream, readValues, wrapStream } from "./value-stream.ts";

async function* each<T>(...items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

async function all<T>(stream: AsyncIterable<T> | undefined): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of stream ?? []) items.push(item);
  return items;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);

t.test("createValueStream() can be read as bytes, and as values with readValues()", async (t) => {
  const stream = (): AsyncIterable<Uint8Array> =>
    createValueStream(
      () => each(bytes("1")),
      () => each(1, 2),
    );
  t.strictSame(await all(stream()), [bytes("1")]);
  t.strictSame(await all(readValues(stream())), [1, 2]);
  t.equal(readValues(each(bytes("1"))), undefined);
  t.equal(readValues(bytes("1")), undefined);
});

t.test("wrapStream() wraps the bytes and the values", async (t) => {
  let seen = 0;
  async function* counted<V>(stream: AsyncIterable<V>): AsyncGenerator<V> {
    for await (const item of stream) {
      seen++;
      yield item;
    }
  }
  const both = createValueStream(
    () => each(bytes("1")),
    () => each(1, 2),
  );
  t.strictSame(await all(readValues(wrapStream(both, counted))), [1, 2]);
  t.equal(seen, 2);
  t.strictSame(await all(wrapStream(both, counted)), [bytes("1")]);
  t.strictSame(await all(wrapStream(each(bytes("x")), counted)), [bytes("x")]);
  t.equal(seen, 4);
});
