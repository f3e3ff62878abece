/**
 * Streams that can be read as values or as bytes: a reader in the same process takes the values and saves encoding and
 * decoding. A connection carries the bytes.
 */
import { JoinedChunks } from "./joined-chunks.ts";
import type { HttpResponse } from "./message.ts";

const VALUES = Symbol("values");

/** Either way of reading consumes the stream. */
export interface ValueStream<V> extends AsyncIterable<Uint8Array> {
  [VALUES](): AsyncIterable<V>;
}

export function createValueStream<V>(
  bytes: () => AsyncIterable<Uint8Array>,
  values: () => AsyncIterable<V>,
): ValueStream<V> {
  return { [Symbol.asyncIterator]: () => bytes()[Symbol.asyncIterator](), [VALUES]: values };
}

/** Applies `wrap`, which keeps no chunk, to the bytes, and to the values where there are values. */
export function wrapStream(
  body: AsyncIterable<Uint8Array>,
  wrap: <V>(stream: AsyncIterable<V>) => AsyncIterable<V>,
): AsyncIterable<Uint8Array> {
  if (body instanceof JoinedChunks) return body.wrapped(wrap);
  if (!(VALUES in body)) return wrap(body);
  const stream = body as ValueStream<unknown>;
  return createValueStream(
    () => wrap(body),
    () => wrap(stream[VALUES]()),
  );
}

/** The values of a body made by `createValueStream` or of joined chunks with values; undefined for every other body. */
export function readValues(body: HttpResponse["body"]): AsyncIterable<unknown> | undefined {
  if (body instanceof JoinedChunks) return body.values();
  return VALUES in body ? (body as ValueStream<unknown>)[VALUES]() : undefined;
}
