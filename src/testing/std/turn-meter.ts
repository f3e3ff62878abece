import process from "node:process";

/** Measures the longest turn of this process' event loop in CPU time, which other processes change little. */
export class TurnMeter implements Disposable {
  #began = threadMs();
  #longest = 0;
  #immediate: NodeJS.Immediate;

  constructor() {
    this.#immediate = setImmediate(() => this.#turn());
  }

  /** Returns the longest turn, in milliseconds, since the last call. */
  take(): number {
    this.#observe();
    const longest = this.#longest;
    this.#longest = 0;
    return longest;
  }

  [Symbol.dispose](): void {
    clearImmediate(this.#immediate);
  }

  #turn(): void {
    this.#observe();
    this.#immediate = setImmediate(() => this.#turn());
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
