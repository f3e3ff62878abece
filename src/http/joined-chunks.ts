import { TimeSlice } from "../std/async/time-slice.ts";

const CHUNK_BYTES = 64 * 1024;

/** Passes a stream on, as it is. */
type Wrap = <V>(stream: AsyncIterable<V>) => AsyncIterable<V>;

/**
 * A body whose parts are joined to chunks of 64 KiB while they are created, which other requests interrupt. An empty
 * part only ends a step of a long computation. It can be iterated once. A reader in the same process can take `values`
 * instead, if there are any.
 */
export class JoinedChunks implements AsyncIterable<Uint8Array> {
  readonly #parts: Iterable<Uint8Array>;
  readonly #values: (() => AsyncIterable<unknown>) | undefined;
  readonly #wrap: Wrap;

  constructor(parts: Iterable<Uint8Array>, values?: () => AsyncIterable<unknown>, wrap: Wrap = (stream) => stream) {
    this.#parts = parts;
    this.#values = values;
    this.#wrap = wrap;
  }

  values(): AsyncIterable<unknown> | undefined {
    return this.#values && this.#wrap(this.#values());
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#wrap(join(this.#parts, newChunk))[Symbol.asyncIterator]();
  }

  /**
   * The same in one buffer: a chunk is valid until the next one is requested. V8 counts buffers as growth of the heap,
   * which it would mark several times a second while lists are sent to many clients.
   */
  inOneBuffer(): AsyncIterator<Uint8Array> {
    const buffer = newChunk();
    return this.#wrap(join(this.#parts, () => buffer))[Symbol.asyncIterator]();
  }

  /** The same body with its chunks or values passed through `wrap`, which must not keep chunks. */
  wrapped(wrap: Wrap): JoinedChunks {
    return new JoinedChunks(this.#parts, this.#values, (stream) => wrap(this.#wrap(stream)));
  }
}

function newChunk(): Buffer {
  return Buffer.allocUnsafeSlow(CHUNK_BYTES);
}

async function* join(parts: Iterable<Uint8Array>, nextChunk: () => Buffer): AsyncGenerator<Uint8Array, void> {
  const slice = new TimeSlice();
  let chunk = nextChunk();
  let length = 0;
  for (const part of parts) {
    let rest = part;
    while (length + rest.length >= CHUNK_BYTES) {
      const fitting = CHUNK_BYTES - length;
      chunk.set(rest.subarray(0, fitting), length);
      yield chunk;
      chunk = nextChunk();
      length = 0;
      rest = rest.subarray(fitting);
    }
    chunk.set(rest, length);
    length += rest.length;
    if (slice.isOver) await slice.end();
  }
  if (length > 0) yield chunk.subarray(0, length);
}
