import type { Filter, HttpResponse } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Clock } from "../../std/time/clock.ts";

/** However few there are, they are not ended more slowly than this; Kubernetes' figure. */
const TERMINATIONS_PER_SECOND_MIN = 200;
const STEP_MS = 50;

/** Knows the answers that go on for as long as their clients like, so that a server that stops can end them. */
export class WatchTermination {
  readonly #clock: Clock;
  readonly #open = new Set<TerminableBody>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly filter: Filter = (next) => (request) => next(request).then(this.#track);

  readonly #track = (response: HttpResponse): HttpResponse => {
    if (!isStreamed(response.body)) return response;
    const body = new TerminableBody(response.body, () => this.#open.delete(body));
    this.#open.add(body);
    return { ...response, body };
  };

  /**
   * Ends all, spread over `graceMs`, those first that began first: their clients come again, to other servers, and not
   * all of them at once. Without grace at once.
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

/** A body that can be brought to its end from outside. */
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

  /** The reader has had enough. */
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
