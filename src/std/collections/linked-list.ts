/** The neighbours of an item of a `LinkedList`. */
export interface LinkedItem<T> {
  previous: T | undefined;
  next: T | undefined;
}

/**
 * A list through its items, each of which is in one list at most: for those that come and go with each request. A Set
 * replaces its table after a few of them, and each table refers to the next one and to its members: from the first one
 * on that V8 has moved to the old generation, all would stay in memory until the whole heap is collected.
 */
export class LinkedList<T extends LinkedItem<T>> implements Iterable<T> {
  #first: T | undefined;
  #last: T | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): T | undefined {
    return this.#first;
  }

  /** The item is in no list. */
  push(item: T): void {
    item.previous = this.#last;
    if (this.#last === undefined) this.#first = item;
    else this.#last.next = item;
    this.#last = item;
    this.#length++;
  }

  /** Does nothing for an item that is in no list. */
  delete(item: T): void {
    const { previous, next } = item;
    if (previous === undefined && this.#first !== item) return;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    item.previous = undefined;
    item.next = undefined;
    this.#length--;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let item = this.#first; item !== undefined; item = item.next) yield item;
  }
}
