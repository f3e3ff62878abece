/** Sends what one turn of the event loop produces as one message. */

/** The part of a `MessagePort` that sends. */
export interface MessageTarget {
  postMessage(message: unknown): void;
}

/** A message costs some 10 µs on each side, whatever it contains. */
export class Outbox<T> {
  readonly #target: MessageTarget;
  #items: T[] = [];
  #scheduled: NodeJS.Immediate | undefined;

  constructor(target: MessageTarget) {
    this.#target = target;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#scheduled ??= setImmediate(() => this.#send());
  }

  /** Drops what has not been sent. */
  close(): void {
    clearImmediate(this.#scheduled);
    this.#items = [];
  }

  #send(): void {
    this.#scheduled = undefined;
    const items = this.#items;
    this.#items = [];
    this.#target.postMessage(items);
  }
}
