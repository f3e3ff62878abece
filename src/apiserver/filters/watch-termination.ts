import type { Filter, HttpResponse } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Clock } from "../../std/time/clock.ts";

/** The minimum rate of terminations, as in Kubernetes. */
const TERMINATIONS_PER_SECOND_MIN = 200;
const STEP_MS = 50;

/** Tracks streamed responses such as watches, so that a shutdown can end them. */
export class WatchTermination {
  readonly #clock: Clock;
  readonly #open = new Set<TerminableBody>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly filter: Filter = (next) => (request) => next(request).then(this.#track);

  readonly #track = (response: HttpResponse): HttpResponse => {
    if (!isStreamed(response.body) || response.finite === true) return response;
    const body = new TerminableBody(response.body, () => this.#open.delete(body));
    this.#open.add(body);
    return { ...response, body };
  };

  /**
   * Ends all streams, the oldest first, spread over `graceMs`, so that clients do not reconnect to other servers at the
   * same time. Ends all at once when `graceMs` is 0.
   */
  async terminate(graceMs: number): Promise<void> {
    const perSecond = Math.max(TERMINATIONS_PER_SECOND_MIN, this.#open.size / (graceMs / 1000));
    const perStep = graceMs > 0 ? Math.ceil((perSecond * STEP_MS) / 1000) : Number.POSITIVE_INFINITY;
    for (;;) {
      let ended = 0;
      for (const body of this.#open) {
        if (ended++ === perStep) break;
        body.end();
      }
      if (this.#open.size === 0) return;
      await this.#clock.sleep(STEP_MS);
    }
  }
}

/** A response body that the server can end. */
class TerminableBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #onClose: () => void;
  #ended = false;
  #pendingRead: ((step: IteratorReturnResult<undefined>) => void) | undefined;

  constructor(source: AsyncIterable<Uint8Array>, onClose: () => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#onClose = onClose;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#ended) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#pendingRead = resolve;
      this.#source.next().then(
        (step) => {
          this.#pendingRead = undefined;
          if (step.done === true) this.#close();
          resolve(step.done === true ? DONE : step);
        },
        (error: unknown) => {
          this.#pendingRead = undefined;
          this.#close();
          reject(error);
        },
      );
    });
  }

  /** The reader stops. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.end();
    return Promise.resolve(DONE);
  }

  end(): void {
    if (this.#ended) return;
    this.#close();
    this.#pendingRead?.(DONE);
    this.#pendingRead = undefined;
    this.#source.return?.()?.catch(() => {});
  }

  #close(): void {
    this.#ended = true;
    this.#onClose();
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
