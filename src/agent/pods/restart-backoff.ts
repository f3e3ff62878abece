/**
 * How long a container that ended waits before it is started again: 10 s, doubled up to 5 min, forgotten after 10 min.
 */

interface Entry {
  readonly delayMs: number;
  readonly updatedAt: number;
}

export const restartInitialMs = 10_000;
export const restartMaxMs = 300_000;
/** While a container waits, it is mentioned again this often; Kubernetes looks again after 10 to 15 s. */
export const remindMs = 13_000;

/** One per pod, in memory; containers carry their delay, for the next agent. The first restart is immediate. */
export class RestartBackoff {
  readonly #entries = new Map<string, Entry>();
  /** When each container's waiting was last spoken of. */
  readonly #told = new Map<string, { readonly run: string; readonly at: number }>();

  /** The delay that runs since `finishedAt` and has not passed at `now`; undefined when a start is allowed. */
  waiting(
    key: string,
    finishedAt: number,
    now: number,
  ): { readonly delayMs: number; readonly until: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || stale(entry, finishedAt)) return undefined;
    const until = finishedAt + entry.delayMs;
    return now < until ? { delayMs: entry.delayMs, until } : undefined;
  }

  /**
   * Whether it is time to say that the container waits after that run: at once, and then now and again, whatever else
   * wakes its pod.
   */
  mention(key: string, run: string, now: number): boolean {
    const told = this.#told.get(key);
    if (told !== undefined && told.run === run && now - told.at < remindMs) return false;
    this.#told.set(key, { run, at: now });
    return true;
  }

  /** What the next restart has to wait; undefined when it may come at once. */
  delayOf(key: string): number | undefined {
    return this.#entries.get(key)?.delayMs;
  }

  /** Takes over what an earlier agent noted at `updatedAt`. */
  adopt(key: string, delayMs: number, updatedAt: number): void {
    const isDelay = delayMs >= restartInitialMs && delayMs <= restartMaxMs;
    if (isDelay && !this.#entries.has(key)) this.#entries.set(key, { delayMs, updatedAt });
  }

  /** Notes a restart at `now` of what finished at `finishedAt`. */
  restarted(key: string, finishedAt: number, now: number): void {
    const entry = this.#entries.get(key);
    const delayMs =
      entry === undefined || stale(entry, finishedAt) ? restartInitialMs : Math.min(entry.delayMs * 2, restartMaxMs);
    this.#entries.set(key, { delayMs, updatedAt: now });
  }
}

/** It ran long enough since its last restart to be taken for healthy. */
function stale(entry: Entry, finishedAt: number): boolean {
  return finishedAt - entry.updatedAt > 2 * restartMaxMs;
}
