import type { WatchSeries } from "./request-metrics.ts";

type Step = IteratorResult<Uint8Array, unknown>;

/** A stream as it is, with somebody who counts what passes and is told once when it is over. */
export class MeasuredStream implements AsyncIterableIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #events: WatchSeries | undefined;
  readonly #ended: (bytes: number) => void;
  readonly #see = (step: Step): void => this.#count(step);
  readonly #fail = (): void => this.#end();
  #bytes = 0;
  #over = false;

  constructor(body: AsyncIterable<Uint8Array>, ended: (bytes: number) => void, events: WatchSeries | undefined) {
    this.#source = body[Symbol.asyncIterator]();
    this.#ended = ended;
    this.#events = events;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The source's own promise: whoever reads waits no longer than without the counting. */
  next(): Promise<Step> {
    const step = this.#source.next();
    step.then(this.#see, this.#fail);
    return step;
  }

  async return(value?: unknown): Promise<Step> {
    this.#end();
    return (await this.#source.return?.(value)) ?? { done: true, value };
  }

  #count(step: Step): void {
    if (step.done === true) {
      this.#end();
      return;
    }
    const { length } = step.value;
    this.#bytes += length;
    this.#events?.total.inc();
    this.#events?.sizes.observe(length);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#ended(this.#bytes);
  }
}
