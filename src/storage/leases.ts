/** The share of a time to live by which values may outlive it, so that they can go together. */
const REUSE_SHARE = 0.05;
/** Values that go at once are removed by as many writes: no more than this. */
const LEASE_VALUES = 1000;

/**
 * When values with a time to live go. Those written within `reuseSeconds` of each other share one end, as etcd's leases
 * are shared by Kubernetes: each lives at least as long as asked, and at most a twentieth, or `reuseSeconds`, longer.
 * Thousands of events then end at a few moments, in a few batches, instead of each at its own. Worked example, 3600 s
 * shared for 60 s:
 *
 *     written at  0 s → ends at 3660 s      the first of a lease has all of the extra time
 *     written at 59 s → ends at 3660 s      3601 s of life
 *     written at 60 s → ends at 3720 s      the lease would have ended it too early
 */
export class Leases {
  readonly #reuseSeconds: number;
  #ends = 0;
  #values = 0;

  /** 0: nothing is shared. */
  constructor(reuseSeconds: number) {
    this.#reuseSeconds = reuseSeconds;
  }

  /** Milliseconds since 1970. */
  expiresAt(ttlSeconds: number, now: number): number {
    const earliest = now + ttlSeconds * 1000;
    const extra = Math.min(this.#reuseSeconds, ttlSeconds * REUSE_SHARE) * 1000;
    const fits = earliest <= this.#ends && this.#ends <= earliest + extra;
    if (!fits || this.#values >= LEASE_VALUES) {
      this.#ends = earliest + extra;
      this.#values = 0;
    }
    this.#values++;
    return this.#ends;
  }
}
