import { Readable } from "node:stream";
import type { Filter, HttpResponse } from "../../../http/message.ts";
import { AbortedStreamError, isStreamed } from "../../../http/server/write-body.ts";
import type { Clock } from "../../../std/time/clock.ts";

/** The minimum rate of terminations, as in Kubernetes. */
const TERMINATIONS_PER_SECOND_MIN = 200;
const STEP_MS = 50;

/** Tracks streamed responses such as watches, so that a shutdown can end them. */
export class WatchTermination {
  readonly #clock: Clock;
  readonly #open = new Set<{ readonly end: () => void }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly filter: Filter = (next) => (request) => next(request).then(this.#track);

  readonly #track = (response: HttpResponse): HttpResponse => {
    const { body, status } = response;
    if (!isStreamed(body) || response.finite === true) return response;
    if (status === 101 && body instanceof Readable) {
      this.#trackConnection(body);
      return response;
    }
    const terminable = new TerminableBody(body, response.resetAtShutdown === true, () => this.#open.delete(terminable));
    this.#open.add(terminable);
    return { ...response, body: terminable };
  };

  /** Streams into containers have no end of their own: the connection breaks, as that of kube-apiserver. */
  #trackConnection(body: Readable): void {
    if (body.closed) return;
    const connection = {
      end: () => {
        this.#open.delete(connection);
        body.destroy();
      },
    };
    this.#open.add(connection);
    body.once("close", () => this.#open.delete(connection));
  }

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
  readonly #resets: boolean;
  readonly #onClose: () => void;
  #ended = false;
  /** The server ended it, and the client must notice. */
  #reset = false;
  /** Ends the read that waits for the source. */
  #endRead: (() => void) | undefined;

  constructor(source: AsyncIterable<Uint8Array>, resets: boolean, onClose: () => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#resets = resets;
    this.#onClose = onClose;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#ended) return this.#end();
    return new Promise((resolve, reject) => {
      this.#endRead = () => resolve(this.#end());
      this.#source.next().then(
        (step) => {
          this.#endRead = undefined;
          if (step.done === true) this.#close();
          resolve(step.done === true ? DONE : step);
        },
        (error: unknown) => {
          this.#endRead = undefined;
          this.#close();
          reject(error);
        },
      );
    });
  }

  /** The reader stops. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#finish();
    return Promise.resolve(DONE);
  }

  end(): void {
    if (this.#ended) return;
    this.#reset = this.#resets;
    this.#finish();
  }

  #finish(): void {
    if (this.#ended) return;
    this.#close();
    this.#endRead?.();
    this.#endRead = undefined;
    this.#source.return?.()?.catch(() => {});
  }

  #end(): Promise<IteratorReturnResult<undefined>> {
    return this.#reset ? Promise.reject(new AbortedStreamError("the server stops")) : Promise.resolve(DONE);
  }

  #close(): void {
    this.#ended = true;
    this.#onClose();
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
