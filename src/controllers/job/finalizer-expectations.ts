/** Pods whose tracking finalizer was removed, until the informer shows it, so that no pod is counted twice. */
export class FinalizerExpectations {
  /** UIDs of pods by the key of their job. Bounded by the pods of jobs: a deleted pod or job is removed. */
  readonly #removed = new Map<string, Set<string>>();

  expectRemoval(key: string, uids: readonly string[]): void {
    const expected = this.#removed.get(key) ?? new Set();
    for (const uid of uids) expected.add(uid);
    if (expected.size > 0) this.#removed.set(key, expected);
  }

  removalObserved(key: string, uid: string): void {
    const expected = this.#removed.get(key);
    expected?.delete(uid);
    if (expected?.size === 0) this.#removed.delete(key);
  }

  expected(key: string): ReadonlySet<string> {
    return new Set(this.#removed.get(key));
  }

  forget(key: string): void {
    this.#removed.delete(key);
  }
}
