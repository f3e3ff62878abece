import process from "node:process";

/** Shorter turns are counted together. */
const RESOLUTION_MS = 2;

/**
 * Measures the longest turn of this process' event loop in CPU time, which other processes change little. It counts up
 * to two milliseconds too much.
 */
export class TurnMeter implements Disposable {
  #began = threadMs();
  #longest = 0;
  // A timer of every turn would keep the thread busy, and delay what waits for other threads.
  readonly #timer = setInterval(() => this.#observe(), RESOLUTION_MS);

  /** Returns the longest turn, in milliseconds, since the last call. */
  take(): number {
    this.#observe();
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #observe(): void {
    const now = threadMs();
    this.#longest = Math.max(this.#longest, now - this.#began);
    this.#began = now;
  }
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
