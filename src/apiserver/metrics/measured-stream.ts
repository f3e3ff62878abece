import { Readable } from "node:stream";
import type { HttpResponse } from "../../http/message.ts";
import { wrapStream } from "../../http/value-stream.ts";
import type { Counter, Histogram } from "../../std/metrics/metrics.ts";

/** Series of the events that are sent to watch clients of a kind. */
export interface WatchSeries {
  readonly total: Counter;
  readonly sizes: Histogram;
}

/** Passes on a stream unchanged, counts its chunks and bytes, and calls `ended` once. Values have no bytes. */
class MeasuredStream<V> implements AsyncIterableIterator<V> {
  readonly #source: AsyncIterator<V>;
  readonly #events: WatchSeries | undefined;
  readonly #ended: (bytes: number) => void;
  readonly #onStep = (step: IteratorResult<V, unknown>): void => this.#count(step);
  readonly #onError = (): void => this.#end();
  #bytes = 0;
  #isOver = false;

  constructor(body: AsyncIterable<V>, ended: (bytes: number) => void, events: WatchSeries | undefined) {
    this.#source = body[Symbol.asyncIterator]();
    this.#ended = ended;
    this.#events = events;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Returns the promise of the source, so that counting does not delay the reader. */
  next(): Promise<IteratorResult<V, unknown>> {
    const step = this.#source.next();
    step.then(this.#onStep, this.#onError);
    return step;
  }

  async return(value?: unknown): Promise<IteratorResult<V, unknown>> {
    this.#end();
    return (await this.#source.return?.(value)) ?? { done: true, value };
  }

  #count(step: IteratorResult<V, unknown>): void {
    if (step.done === true) {
      this.#end();
      return;
    }
    this.#events?.total.inc();
    if (!(step.value instanceof Uint8Array)) return;
    this.#bytes += step.value.length;
    this.#events?.sizes.observe(step.value.length);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended(this.#bytes);
  }
}

/**
 * Calls `ended` once when the streamed body is over. The body of a switched connection is passed on as it is, which the
 * listener copies faster than the steps of an iterator; its bytes are not counted.
 */
export function measureBody(
  response: HttpResponse,
  body: AsyncIterable<Uint8Array>,
  ended: (bytes: number) => void,
  events: WatchSeries | undefined,
): HttpResponse {
  if (response.status !== 101 || !(body instanceof Readable)) {
    return { ...response, body: wrapStream(body, (stream) => new MeasuredStream(stream, ended, events)) };
  }
  if (body.closed) ended(0);
  else body.once("close", () => ended(0));
  return response;
}
