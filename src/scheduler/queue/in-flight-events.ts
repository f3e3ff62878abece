/**
 * The events since pods were taken from the queue. A pod that returns as unschedulable may have been rejected because
 * of a state that has changed in between.
 */
import type { ClusterEvent } from "../framework/cluster-event.ts";

/** The maximum number of events to keep; pods that were taken before dropped ones are retried. */
const EVENTS_MAX = 10_000;

export class InFlightEvents {
  /** The number of the first event that the pod has not seen, by uid, in ascending order. */
  readonly #startOf = new Map<string, number>();
  #events: ClusterEvent[] = [];
  /** The number of the first event that is kept. */
  #first = 0;

  begin(uid: string): void {
    this.#startOf.delete(uid);
    this.#startOf.set(uid, this.#first + this.#events.length);
  }

  has(uid: string): boolean {
    return this.#startOf.has(uid);
  }

  record(event: ClusterEvent): void {
    if (this.#startOf.size === 0) return;
    if (this.#events.length >= EVENTS_MAX) this.#drop(EVENTS_MAX / 2);
    this.#events.push(event);
  }

  /** The number of pods in flight, and of events by name. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    if (this.#startOf.size > 0) counts.set("PodPopped", this.#startOf.size);
    for (const { resource, action } of this.#events) {
      const name = `${resource}${action}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** The events since `begin`; undefined if some of them were dropped. */
  end(uid: string): readonly ClusterEvent[] | undefined {
    const start = this.#startOf.get(uid);
    if (start === undefined) return [];
    this.#startOf.delete(uid);
    const events = start < this.#first ? undefined : this.#events.slice(start - this.#first);
    const oldest = this.#startOf.values().next();
    const keepFrom = oldest.done === true ? this.#first + this.#events.length : oldest.value;
    if (keepFrom > this.#first) this.#drop(keepFrom - this.#first);
    return events;
  }

  #drop(count: number): void {
    this.#events.splice(0, count);
    this.#first += count;
  }
}
