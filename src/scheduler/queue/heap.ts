/** A binary heap of keyed items: the first is at hand, any can be removed. */
export class Heap<T> {
  readonly #keyOf: (item: T) => string;
  readonly #isBefore: (a: T, b: T) => boolean;
  readonly #items: T[] = [];
  readonly #indexes = new Map<string, number>();

  constructor(keyOf: (item: T) => string, isBefore: (a: T, b: T) => boolean) {
    this.#keyOf = keyOf;
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  get(key: string): T | undefined {
    const index = this.#indexes.get(key);
    return index === undefined ? undefined : this.#items[index];
  }

  /** Adds the item, or replaces that with the same key. */
  set(item: T): void {
    this.delete(this.#keyOf(item));
    this.#place(item, this.#items.length);
    this.#rise(this.#items.length - 1);
  }

  delete(key: string): T | undefined {
    const index = this.#indexes.get(key);
    if (index === undefined) return undefined;
    const removed = this.#items[index];
    const last = this.#items.pop()!;
    this.#indexes.delete(key);
    if (index === this.#items.length) return removed;
    this.#place(last, index);
    this.#rise(index);
    this.#sink(this.#indexes.get(this.#keyOf(last))!);
    return removed;
  }

  shift(): T | undefined {
    const first = this.first;
    return first === undefined ? undefined : this.delete(this.#keyOf(first));
  }

  values(): IterableIterator<T> {
    return this.#items.values();
  }

  #place(item: T, index: number): void {
    this.#items[index] = item;
    this.#indexes.set(this.#keyOf(item), index);
  }

  #rise(start: number): void {
    const item = this.#items[start]!;
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(item, this.#items[parent]!)) break;
      this.#place(this.#items[parent]!, index);
      index = parent;
    }
    this.#place(item, index);
  }

  #sink(start: number): void {
    const item = this.#items[start]!;
    let index = start;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#items.length) break;
      const right = child + 1;
      if (right < this.#items.length && this.#isBefore(this.#items[right]!, this.#items[child]!)) child = right;
      if (!this.#isBefore(this.#items[child]!, item)) break;
      this.#place(this.#items[child]!, index);
      index = child;
    }
    this.#place(item, index);
  }
}
