/**
 * Creations and deletions that a controller has requested and its informer has not shown yet. Until all are seen the
 * controller creates and deletes nothing more, so that a late informer does not make it do the same twice.
 */
import type { Clock } from "../../std/time/clock.ts";

/** After this time the informer is considered to have missed something, as in Kubernetes. */
const EXPIRATION_MS = 5 * 60_000;

interface Expectation {
  creations: number;
  /** Keys of pods, so that the update to terminating and the deletion count once. */
  readonly deletions: Set<string>;
  readonly since: number;
}

/** Bounded by the number of objects: `forget` removes a deleted one. */
export class Expectations {
  readonly #clock: Clock;
  readonly #expected = new Map<string, Expectation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  areSatisfied(key: string): boolean {
    const expected = this.#expected.get(key);
    if (expected === undefined || (expected.creations <= 0 && expected.deletions.size === 0)) return true;
    return this.#clock.monotonic() - expected.since > EXPIRATION_MS;
  }

  expectCreations(key: string, count: number): void {
    this.#expected.set(key, { creations: count, deletions: new Set(), since: this.#clock.monotonic() });
  }

  expectDeletions(key: string, pods: readonly string[]): void {
    this.#expected.set(key, { creations: 0, deletions: new Set(pods), since: this.#clock.monotonic() });
  }

  creationObserved(key: string): void {
    const expected = this.#expected.get(key);
    if (expected !== undefined) expected.creations--;
  }

  deletionObserved(key: string, pod: string): void {
    this.#expected.get(key)?.deletions.delete(pod);
  }

  forget(key: string): void {
    this.#expected.delete(key);
  }
}
