/** Counts the requests in flight, so that a stopping server can wait for the last one. */
export class RequestsInFlight {
  #count = 0;
  #draining = false;
  #waiting: (() => void)[] = [];
  /** Connections that have switched protocols: a stopping server does not wait for their end. */
  #switched = 0;
  #waitingForSwitched: (() => void)[] = [];

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

  /** A request has switched the protocol of its connection. */
  enterSwitched(): void {
    this.#switched++;
    this.leave();
  }

  leaveSwitched(): void {
    this.#switched--;
    if (this.#switched > 0) return;
    const waiting = this.#waitingForSwitched;
    this.#waitingForSwitched = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when no connection with another protocol is open. */
  switchedEnd(): Promise<void> {
    if (this.#switched === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waitingForSwitched.push(resolve));
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
