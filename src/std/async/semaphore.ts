/** Bounds how many tasks run at the same time; further tasks wait in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(capacity: number) {
    this.#free = capacity;
  }

  /** Runs the task when a place is free. Rejects with the signal's reason when it aborts before that. */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    try {
      return await task();
    } finally {
      this.#release();
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const start = (): void => {
        signal.removeEventListener("abort", abort);
        resolve();
      };
      const abort = (): void => {
        this.#waiting.delete(start);
        reject(signal.reason);
      };
      this.#waiting.add(start);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
