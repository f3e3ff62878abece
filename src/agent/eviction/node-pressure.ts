/** Which thresholds are met, since when, and which pressure conditions the node has for it. */
import { type Observations, type PressureType, signals } from "./signals.ts";
import { findMetThresholds, type Threshold } from "./thresholds.ts";

const ORDER: readonly PressureType[] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

export class NodePressure {
  readonly #transitionMs: number;
  #firstObservedAt: ReadonlyMap<Threshold, number> = new Map();
  readonly #lastObservedAt = new Map<PressureType, number>();
  /** Met for their grace period, and not resolved with their minimum reclaim. */
  #due: readonly Threshold[] = [];
  #conditions: readonly PressureType[] = [];

  /** A condition remains true for this time after its last threshold was met. */
  constructor(transitionMs: number) {
    this.#transitionMs = transitionMs;
  }

  get conditions(): readonly PressureType[] {
    return this.#conditions;
  }

  /** Returns the thresholds that evict pods now; `now` is on the monotonic clock. */
  update(thresholds: readonly Threshold[], observations: Observations, now: number): readonly Threshold[] {
    const unresolved = findMetThresholds(this.#due, observations, true);
    const met = new Set([...findMetThresholds(thresholds, observations, false), ...unresolved]);
    this.#firstObservedAt = new Map([...met].map((each) => [each, this.#firstObservedAt.get(each) ?? now]));
    const observed = new Set([...met].map(({ signal }) => signals[signal].condition));
    for (const type of observed) this.#lastObservedAt.set(type, now);
    this.#conditions = ORDER.filter((type) => {
      const last = this.#lastObservedAt.get(type);
      return observed.has(type) || (last !== undefined && now - last < this.#transitionMs);
    });
    this.#due = [...met].filter((each) => now - (this.#firstObservedAt.get(each) ?? now) >= each.graceMs);
    return this.#due;
  }

  /** Milliseconds until the first grace period ends; undefined when none runs. */
  graceLeftMs(now: number): number | undefined {
    const left = [...this.#firstObservedAt]
      .map(([{ graceMs }, since]) => graceMs - (now - since))
      .filter((each) => each > 0);
    return left.length === 0 ? undefined : Math.min(...left);
  }
}
