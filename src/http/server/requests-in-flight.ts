/** Counts the requests in flight, so that a stopping server can wait for the last one. */
export class RequestsInFlight {
  #count = 0;
  #draining = false;
  #waiting: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  /** The server is stopping: responses should close their connection. */
  get draining(): boolean {
    return this.#draining;
  }

  enter(): void {
    this.#count++;
  }

  leave(): void {
    this.#count--;
    if (this.#count === 0) this.#settle();
  }

  /** Sets `draining`; resolves when nothing is in flight. */
  drain(): Promise<void> {
    this.#draining = true;
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #settle(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
