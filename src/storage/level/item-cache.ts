import type { KeyValue } from "../store.ts";

/** Limits of about one busy second of writes. The watch caches share the values, so that little memory is extra. */
const ITEMS_MAX = 4096;
const BYTES_MAX = 4 * 2 ** 20;

/**
 * The values of the keys that were last written or read: an object is mostly updated several times. Only the writer
 * fills it, with values on disk, so it is never stale. The oldest items are evicted first.
 */
export class ItemCache {
  readonly #items = new Map<string, KeyValue>();
  #bytes = 0;

  get(key: string): KeyValue | undefined {
    return this.#items.get(key);
  }

  set(item: KeyValue): void {
    this.delete(item.key);
    this.#items.set(item.key, item);
    this.#bytes += item.value.length;
    for (const oldest of this.#items.keys()) {
      if (this.#items.size <= ITEMS_MAX && this.#bytes <= BYTES_MAX) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const item = this.#items.get(key);
    if (item === undefined) return;
    this.#items.delete(key);
    this.#bytes -= item.value.length;
  }

  clear(): void {
    this.#items.clear();
    this.#bytes = 0;
  }
}
