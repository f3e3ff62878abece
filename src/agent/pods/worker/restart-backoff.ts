/**
 * How long a container that ended waits before it is started again: 10 s, doubled up to 5 min, forgotten after 10 min;
 * operators may want it shorter.
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
/** A container that ran for so long since its last restart is taken for healthy. */
const HEALTHY_MS = 600_000;
/** While a container waits, it is mentioned again this often; Kubernetes looks again after 10 to 15 s. */
export const reportIntervalMs = 13_000;

interface Wait {
  readonly finishedAt: number;
  readonly delayMs: number;
  readonly until: number;
}

/**
 * One per pod, in memory; containers carry their delay, for the next agent. The first restart is immediate. When a run
 * ended is a time of day, which may turn out to lie in the future; what is left of a delay is measured otherwise.
 */
export class RestartBackoff {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #delays: RestartDelays;
  readonly #entries = new Map<string, Entry>();
  /** The wait after each container's last run. */
  readonly #waits = new Map<string, Wait>();
  /** When each container's waiting was last spoken of, on the monotonic clock. */
  readonly #told = new Map<string, { readonly run: string; readonly at: number }>();

  constructor(clock: Pick<Clock, "now" | "monotonic">, delays: RestartDelays = defaultRestartDelays) {
    this.#clock = clock;
    this.#delays = delays;
  }

  /**
   * The delay that runs since `finishedAt`, and when it is over on the monotonic clock; undefined when a start is
   * allowed.
   */
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

  /**
   * Whether it is time to say that the container waits after that run: at once, and then now and again, whatever else
   * wakes its pod.
   */
  shouldReport(key: string, run: string): boolean {
    const told = this.#told.get(key);
    const now = this.#clock.monotonic();
    if (told !== undefined && told.run === run && now - told.at < reportIntervalMs) return false;
    this.#told.set(key, { run, at: now });
    return true;
  }

  /** What the next restart has to wait; undefined when it may come at once. */
  getDelay(key: string): number | undefined {
    return this.#entries.get(key)?.delayMs;
  }

  /** Takes over what an earlier agent noted at `updatedAt`, which may have had other delays. */
  adopt(key: string, delayMs: number, updatedAt: number): void {
    if (!(delayMs > 0) || this.#entries.has(key)) return;
    this.#entries.set(key, { delayMs: Math.min(delayMs, this.#delays.maxMs), updatedAt });
  }

  /** Notes a restart now of what finished at `finishedAt`. */
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
