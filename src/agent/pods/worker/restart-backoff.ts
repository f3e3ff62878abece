/**
 * The delay before an exited container is restarted: 10 s, doubled up to 5 min, reset after a run of 10 min. Operators
 * may configure shorter delays.
 */
import type { Clock } from "../../../std/time/clock.ts";

interface Entry {
  readonly delayMs: number;
  readonly updatedAt: number;
}

export interface RestartDelays {
  readonly initialMs: number;
  readonly maxMs: number;
}

export const defaultRestartDelays: RestartDelays = { initialMs: 10_000, maxMs: 300_000 };
/** A run of this length since the last restart resets the delay. */
const HEALTHY_MS = 600_000;
/** Interval between BackOff events of a waiting container; Kubernetes syncs again after 10 to 15 s. */
export const reportIntervalMs = 13_000;

interface Wait {
  readonly finishedAt: number;
  readonly delayMs: number;
  readonly until: number;
}

/**
 * One per pod, in memory; annotations of the containers hold the delay for the next agent. The first restart is
 * immediate. The end of a run is a wall-clock time, which may lie in the future after the clock was set; the rest of a
 * delay is measured on the monotonic clock.
 */
export class RestartBackoff {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #delays: RestartDelays;
  readonly #entries = new Map<string, Entry>();
  /** The wait after each container's last run. */
  readonly #waits = new Map<string, Wait>();
  /** When each container's BackOff event was last recorded, on the monotonic clock. */
  readonly #reported = new Map<string, { readonly state: string; readonly at: number }>();

  constructor(clock: Pick<Clock, "now" | "monotonic">, delays: RestartDelays = defaultRestartDelays) {
    this.#clock = clock;
    this.#delays = delays;
  }

  /** The delay since `finishedAt`, and its end on the monotonic clock; undefined when the container may start. */
  remainingDelay(key: string, finishedAt: number): { readonly delayMs: number; readonly until: number } | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || isStale(entry, finishedAt)) return undefined;
    const { delayMs, until } = this.#wait(key, finishedAt, entry.delayMs);
    return this.#clock.monotonic() < until ? { delayMs, until } : undefined;
  }

  #wait(key: string, finishedAt: number, delayMs: number): Wait {
    const known = this.#waits.get(key);
    if (known?.finishedAt === finishedAt && known.delayMs === delayMs) return known;
    const leftMs = Math.min(Math.max(finishedAt + delayMs - this.#clock.now(), 0), delayMs);
    const wait = { finishedAt, delayMs, until: this.#clock.monotonic() + leftMs };
    this.#waits.set(key, wait);
    return wait;
  }

  /** Whether to record a BackOff event in that state of the pod: at once and then at intervals. */
  shouldReport(key: string, state: string): boolean {
    const last = this.#reported.get(key);
    const now = this.#clock.monotonic();
    if (last !== undefined && last.state === state && now - last.at < reportIntervalMs) return false;
    this.#reported.set(key, { state, at: now });
    return true;
  }

  /** The delay of the next restart; undefined when that is immediate. */
  getDelay(key: string): number | undefined {
    return this.#entries.get(key)?.delayMs;
  }

  /** Sets the delay that an earlier agent, perhaps with another configuration, recorded at `updatedAt`. */
  adopt(key: string, delayMs: number, updatedAt: number): void {
    if (!(delayMs > 0) || this.#entries.has(key)) return;
    this.#entries.set(key, { delayMs: Math.min(delayMs, this.#delays.maxMs), updatedAt });
  }

  /** The next restart is immediate. */
  reset(key: string): void {
    this.#entries.delete(key);
    this.#waits.delete(key);
  }

  /** Records a restart, now, of the run that ended at `finishedAt`. */
  recordRestart(key: string, finishedAt: number): void {
    const entry = this.#entries.get(key);
    const { initialMs, maxMs } = this.#delays;
    const delayMs = entry === undefined || isStale(entry, finishedAt) ? initialMs : Math.min(entry.delayMs * 2, maxMs);
    this.#entries.set(key, { delayMs, updatedAt: this.#clock.now() });
  }
}

function isStale(entry: Entry, finishedAt: number): boolean {
  return finishedAt - entry.updatedAt > HEALTHY_MS;
}
