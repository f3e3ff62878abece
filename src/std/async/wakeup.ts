/** Lets loops sleep until something has changed. Carries no value: a loop that wakes reads the state itself. */
export class Wakeup {
  #sleepers = new Set<() => void>();

  /** Resolves every pending `wait`. */
  notify(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = new Set();
    for (const wake of sleepers) wake();
  }

  /** Resolves at the next `notify`, or when `signal` aborts; the caller checks which. */
  wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        this.#sleepers.delete(wake);
        resolve();
      };
      this.#sleepers.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
