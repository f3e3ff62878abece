/**
 * Streams that can be read as values as well as bytes: a reader in the same process is spared the encoding of what it
 * would only decode again. Over a connection there are only bytes.
 */
import type { HttpResponse } from "./message.ts";

const VALUES = Symbol("values");

/** Either reading takes what there is: a stream is read once. */
export interface ValueStream<V> extends AsyncIterable<Uint8Array> {
  [VALUES](): AsyncIterable<V>;
}

export function createValueStream<V>(bytes: () => AsyncIterable<Uint8Array>, values: () => AsyncIterable<V>): ValueStream<V> {
  return { [Symbol.asyncIterator]: () => bytes()[Symbol.asyncIterator](), [VALUES]: values };
}

/** The stream as `wrap` makes it, by whichever reading. */
export function wrapStream(
  body: AsyncIterable<Uint8Array>,
  wrap: <V>(stream: AsyncIterable<V>) => AsyncIterable<V>,
): AsyncIterable<Uint8Array> {
  if (!(VALUES in body)) return wrap(body);
  const stream = body as ValueStream<unknown>;
  return createValueStream(
    () => wrap(body),
    () => wrap(stream[VALUES]()),
  );
}

/** What a body made by `valueStream` holds; undefined for every other body. */
export function readValues(body: HttpResponse["body"]): AsyncIterable<unknown> | undefined {
  return VALUES in body ? (body as ValueStream<unknown>)[VALUES]() : undefined;
}
