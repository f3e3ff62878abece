import type { Filter, HttpResponse } from "../../http/message.ts";
import { isStreamed } from "../../http/server/write-body.ts";
import type { Clock } from "../../std/time/clock.ts";

/** However few there are, they are not ended more slowly than this; Kubernetes' figure. */
const PER_SECOND_MIN = 200;
const STEP_MS = 50;

/** Knows the answers that go on for as long as their clients like, so that a server that stops can end them. */
export class LongRunning {
  readonly #clock: Clock;
  readonly #open = new Set<Endable>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly filter: Filter = (next) => (request) => next(request).then(this.#known);

  readonly #known = (response: HttpResponse): HttpResponse => {
    if (!isStreamed(response.body)) return response;
    const body = new Endable(response.body, () => this.#open.delete(body));
    this.#open.add(body);
    return { ...response, body };
  };

  /**
   * Ends all, spread over `graceMs`, those first that began first: their clients come again, to other servers, and not
   * all of them at once. Without grace at once.
   */
  async end(graceMs: number): Promise<void> {
    const perSecond = Math.max(PER_SECOND_MIN, this.#open.size / (graceMs / 1000));
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
class Endable implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #over: () => void;
  #ended = false;
  #waiting: ((step: IteratorReturnResult<undefined>) => void) | undefined;

  constructor(source: AsyncIterable<Uint8Array>, over: () => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#over = over;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#ended) return Promise.resolve(END);
    return new Promise((resolve, reject) => {
      this.#waiting = resolve;
      this.#source.next().then(
        (step) => {
          this.#waiting = undefined;
          if (step.done === true) this.#close();
          resolve(step.done === true ? END : step);
        },
        (error: unknown) => {
          this.#waiting = undefined;
          this.#close();
          reject(error);
        },
      );
    });
  }

  /** The reader has had enough. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.end();
    return Promise.resolve(END);
  }

  end(): void {
    if (this.#ended) return;
    this.#close();
    this.#waiting?.(END);
    this.#waiting = undefined;
    this.#source.return?.()?.catch(() => {});
  }

  #close(): void {
    this.#ended = true;
    this.#over();
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };
