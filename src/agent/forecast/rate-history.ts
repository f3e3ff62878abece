/** Values of the last minutes, by name, and how fast they change. */

export interface Rate {
  readonly perSecond: number;
  /** Seconds over which it was measured. */
  readonly seconds: number;
}

export interface RateHistoryOptions {
  readonly windowMs: number;
  /** Values that follow sooner replace those before. */
  readonly spacingMs: number;
}

interface Entry {
  readonly at: number;
  readonly values: ReadonlyMap<string, number>;
}

/** A shorter measurement has no meaning. */
const SECONDS_MIN = 1;

export class RateHistory {
  readonly #options: RateHistoryOptions;
  /** In ascending order; at most one for each spacing of the window, and the newest. */
  readonly #entries: Entry[] = [];

  constructor(options: RateHistoryOptions) {
    this.#options = options;
  }

  /** `at`: milliseconds on the monotonic clock. */
  add(at: number, values: ReadonlyMap<string, number>): void {
    const { windowMs, spacingMs } = this.#options;
    const before = this.#entries.at(-2);
    if (before !== undefined && at - before.at < spacingMs) this.#entries.pop();
    this.#entries.push({ at, values });
    while ((this.#entries[0]?.at ?? at) < at - windowMs) this.#entries.shift();
  }

  /** Undefined when it is unknown. */
  rateOf(name: string): Rate | undefined {
    const known = this.#entries.filter(({ values }) => values.has(name));
    const [first, last] = [known[0], known.at(-1)];
    if (first === undefined || last === undefined) return undefined;
    const seconds = (last.at - first.at) / 1000;
    if (seconds < SECONDS_MIN) return undefined;
    return { perSecond: ((last.values.get(name) ?? 0) - (first.values.get(name) ?? 0)) / seconds, seconds };
  }
}

/** Later times are not estimated. */
const SECONDS_MAX = 366 * 86_400;

/** Seconds until a value that changes has fallen by `distance`; 0 when it has; undefined: not at this rate. */
export function secondsUntil(distance: number, rate: Rate | undefined): number | undefined {
  if (distance <= 0) return 0;
  if (rate === undefined || rate.perSecond >= 0) return undefined;
  const seconds = distance / -rate.perSecond;
  return seconds > SECONDS_MAX ? undefined : Math.round(seconds);
}
