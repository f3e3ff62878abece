export interface Mapping<A, B> {
  readonly map: (value: A) => B;
  /** The last value, after an error of the source or of `map`. */
  readonly recover: (error: unknown) => B;
  /** Called once, when the source is over or no more of it is read. */
  readonly onEnd: () => void;
}

/**
 * The values of `source`, each replaced by another. A generator with `for await` does the same with several promises
 * more for each value, which counts for an event that a thousand watches receive; and `return` waits there for a
 * pending value, which here ends at once.
 */
export class MappedIterator<A, B> implements AsyncIterableIterator<B, undefined> {
  readonly #source: AsyncIterator<A>;
  readonly #mapping: Mapping<A, B>;
  readonly #onResult = (result: IteratorResult<A, unknown>): IteratorResult<B, undefined> => this.#mapResult(result);
  readonly #onError = (error: unknown): IteratorResult<B, undefined> => this.#recover(error);
  #isOver = false;

  constructor(source: AsyncIterable<A>, mapping: Mapping<A, B>) {
    this.#source = source[Symbol.asyncIterator]();
    this.#mapping = mapping;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<B, undefined>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    return this.#source.next().then(this.#onResult, this.#onError);
  }

  async return(): Promise<IteratorResult<B, undefined>> {
    this.#end();
    await this.#source.return?.();
    return { done: true, value: undefined };
  }

  #mapResult(result: IteratorResult<A, unknown>): IteratorResult<B, undefined> {
    if (result.done === true || this.#isOver) {
      this.#end();
      return { done: true, value: undefined };
    }
    try {
      return { done: false, value: this.#mapping.map(result.value) };
    } catch (error) {
      this.#source.return?.()?.catch(() => {});
      return this.#recover(error);
    }
  }

  #recover(error: unknown): IteratorResult<B, undefined> {
    if (this.#isOver) return { done: true, value: undefined };
    this.#end();
    return { done: false, value: this.#mapping.recover(error) };
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#mapping.onEnd();
  }
}
