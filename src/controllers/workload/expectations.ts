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

  /** Milliseconds until open expectations expire; 0 if none is open. */
  untilExpired(key: string): number {
    if (this.areSatisfied(key)) return 0;
    return (this.#expected.get(key)?.since ?? 0) + EXPIRATION_MS + 1 - this.#clock.monotonic();
  }

  expectCreations(key: string, count: number): void {
    this.expect(key, count, []);
  }

  expectDeletions(key: string, pods: readonly string[]): void {
    this.expect(key, 0, pods);
  }

  expect(key: string, creations: number, deletions: readonly string[]): void {
    this.#expected.set(key, { creations, deletions: new Set(deletions), since: this.#clock.monotonic() });
  }

  /** Adds to what is expected already. */
  raise(key: string, creations: number, deletions: readonly string[]): void {
    const open = this.areSatisfied(key) ? undefined : this.#expected.get(key);
    this.expect(key, Math.max(0, open?.creations ?? 0) + creations, [...(open?.deletions ?? []), ...deletions]);
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
