/** Objects in key order: a sorted array with binary search. A list is one slice. */
export class SortedObjects<V extends { readonly key: string }> {
  #items: V[] = [];

  get size(): number {
    return this.#items.length;
  }

  get(key: string): V | undefined {
    const item = this.#items[this.#lower(key)];
    return item?.key === key ? item : undefined;
  }

  set(value: V): void {
    const at = this.#lower(value.key);
    if (this.#items[at]?.key === value.key) this.#items[at] = value;
    else if (at === this.#items.length) this.#items.push(value);
    else this.#items.splice(at, 0, value);
  }

  delete(key: string): void {
    const at = this.#lower(key);
    if (this.#items[at]?.key === key) this.#items.splice(at, 1);
  }

  /** All whose keys start with `prefix`. */
  prefixed(prefix: string): V[] {
    const from = this.#lower(prefix);
    // Keys with the prefix are adjacent: searches the first one without it.
    let low = from;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#items[middle]!.key.startsWith(prefix)) low = middle + 1;
      else high = middle;
    }
    return this.#items.slice(from, low);
  }

  /** All whose keys are `from <= key < to`. */
  between(from: string, to: string): V[] {
    return this.#items.slice(this.#lower(from), this.#lower(to));
  }

  all(): readonly V[] {
    return this.#items;
  }

  /** Index of the key, or of its insertion. */
  #lower(key: string): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#items[middle]!.key < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
