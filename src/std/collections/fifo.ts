/** A queue whose `shift` takes constant time. Its owner bounds it. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get last(): T | undefined {
    return this.length > 0 ? this.#items.at(-1) : undefined;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Replaces the last item; the queue must not be empty. */
  replaceLast(item: T): void {
    if (this.length === 0) throw new RangeError("Cannot replace the last item: the queue is empty");
    this.#items[this.#items.length - 1] = item;
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head++];
    if (this.#head === this.#items.length) this.clear();
    else if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
