/** Writing the bodies of responses with backpressure. */
import { Readable, type Writable } from "node:stream";
import { copiedBytes } from "../../std/memory/collect-copied.ts";
import type { Clock } from "../../std/time/clock.ts";
import { JoinedChunks } from "../joined-chunks.ts";
import type { HttpResponse } from "../message.ts";

type Body = HttpResponse["body"];

/** One write to a socket. Larger ones cost memory and are no faster. */
const CHUNK_BYTES = 64 * 1024;

/** How long a client may read nothing of what it is sent. */
export interface StallTimeout {
  readonly clock: Clock;
  readonly stallTimeoutMs: number;
}

/** The server resets a response: the client read nothing for the stall timeout, or the server stops. */
export class AbortedStreamError extends Error {
  override readonly name = "AbortedStreamError";
}

export function isStreamed(body: Body): body is AsyncIterable<Uint8Array> {
  return Symbol.asyncIterator in body;
}

/** The length of a body in memory; undefined for a stream. */
export function bodyLength(body: Body): number | undefined {
  if (body instanceof Uint8Array) return body.length;
  if (isStreamed(body)) return undefined;
  let length = 0;
  for (const chunk of body) length += chunk.length;
  return length;
}

/**
 * Writes the body and ends the sink. Resolves when all is written or the sink is closed; rejects when an async iterable
 * throws, or with an AbortedStreamError, and then leaves the sink open for the caller to reset.
 */
export async function writeBody(sink: Writable, body: Body, timeout: StallTimeout): Promise<void> {
  if (writeSmallBody(sink, body)) return;
  if (isStreamed(body)) return await writeStream(sink, body, timeout);
  for (const chunk of resizeChunks(body instanceof Uint8Array ? [body] : body)) {
    if (sink.destroyed) return;
    if (!sink.write(chunk)) await waitForDrain(sink, timeout);
  }
  sink.end();
}

/** Writes a small body in memory and ends the sink; otherwise does nothing and returns false. */
export function writeSmallBody(sink: Writable, body: Body): boolean {
  if (body instanceof Uint8Array) {
    if (body.length > CHUNK_BYTES) return false;
    sink.end(body);
    return true;
  }
  const length = bodyLength(body);
  if (isStreamed(body) || length === undefined || length > CHUNK_BYTES) return false;
  sink.end(body.length === 1 ? body[0] : Buffer.concat(body, length));
  return true;
}

/** Ends a stream that will not be read. */
export function discardBody(body: Body): void {
  // The iterator of a stream that nothing has been read of would not destroy it.
  if (body instanceof Readable) body.on("error", () => {}).destroy();
  else if (isStreamed(body)) abandon(body[Symbol.asyncIterator]());
}

async function writeStream(sink: Writable, body: AsyncIterable<Uint8Array>, timeout: StallTimeout): Promise<void> {
  const isOneBuffer = body instanceof JoinedChunks;
  const source = isOneBuffer ? body.inOneBuffer() : body[Symbol.asyncIterator]();
  const reader = new SinkReader(sink, source);
  for (;;) {
    const result = await reader.next();
    if (result === "closed") {
      abandon(source);
      return;
    }
    if (result.done === true) break;
    try {
      if (isOneBuffer) await writeWhole(sink, result.value, timeout);
      else {
        copiedBytes.add(result.value.length);
        for (const chunk of sliceChunk(result.value)) {
          if (!sink.write(chunk)) await waitForDrain(sink, timeout);
        }
      }
    } catch (error) {
      abandon(source);
      throw error;
    }
  }
  sink.end();
}

/**
 * A source may be silent for hours: closing the sink must not wait for its next chunk. One listener for all chunks; not
 * `Promise.race` with one promise for the close, which would keep a reaction for every chunk until then.
 */
class SinkReader {
  readonly #sink: Writable;
  readonly #source: AsyncIterator<Uint8Array>;
  #close: (() => void) | undefined;

  constructor(sink: Writable, source: AsyncIterator<Uint8Array>) {
    this.#sink = sink;
    this.#source = source;
    sink.once("close", () => this.#close?.());
  }

  next(): Promise<IteratorResult<Uint8Array, unknown> | "closed"> {
    if (this.#sink.destroyed) return Promise.resolve("closed");
    return new Promise((resolve, reject) => {
      this.#close = () => resolve("closed");
      this.#source.next().then(resolve, reject);
    });
  }
}

function abandon(source: AsyncIterator<Uint8Array>): void {
  source.return?.()?.catch(() => {});
}

function waitForDrain(sink: Writable, timeout: StallTimeout): Promise<void> {
  if (sink.destroyed || !sink.writableNeedDrain) return Promise.resolve();
  return waitUntil(sink, timeout, (done) => {
    sink.on("drain", done);
    return () => sink.off("drain", done);
  });
}

/** Resolves when the chunk is sent, so that its buffer can be used again, or the sink is closed. */
function writeWhole(sink: Writable, chunk: Uint8Array, timeout: StallTimeout): Promise<void> {
  return waitUntil(sink, timeout, (done) => {
    sink.write(chunk, done);
    return () => {};
  });
}

/** `listen` gets a function to be called when the client has read, and returns what undoes it. */
function waitUntil(
  sink: Writable,
  { clock, stallTimeoutMs }: StallTimeout,
  listen: (done: () => void) => () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let stopListening = (): void => {};
    const cleanUp = (): void => {
      stopListening();
      sink.off("close", done);
      timer.cancel();
    };
    const done = (): void => {
      cleanUp();
      resolve();
    };
    const timer = clock.timer(stallTimeoutMs, () => {
      cleanUp();
      reject(new AbortedStreamError(`the client read nothing for ${stallTimeoutMs} ms`));
    });
    sink.on("close", done);
    stopListening = listen(done);
  });
}

/** Joins small chunks and splits large ones. */
function* resizeChunks(chunks: readonly Uint8Array[]): Generator<Uint8Array> {
  let pending: Uint8Array[] = [];
  let length = 0;
  for (const chunk of chunks) {
    if (length + chunk.length > CHUNK_BYTES && length > 0) {
      yield Buffer.concat(pending, length);
      pending = [];
      length = 0;
    }
    if (chunk.length > CHUNK_BYTES / 2) {
      if (length > 0) yield Buffer.concat(pending, length);
      pending = [];
      length = 0;
      yield* sliceChunk(chunk);
    } else if (chunk.length > 0) {
      pending.push(chunk);
      length += chunk.length;
    }
  }
  if (length > 0) yield Buffer.concat(pending, length);
}

function* sliceChunk(chunk: Uint8Array): Generator<Uint8Array> {
  if (chunk.length <= CHUNK_BYTES) {
    if (chunk.length > 0) yield chunk;
    return;
  }
  for (let start = 0; start < chunk.length; start += CHUNK_BYTES) yield chunk.subarray(start, start + CHUNK_BYTES);
}
