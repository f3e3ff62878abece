/** Share of a time to live by which values may outlive it, so that many expire together. */
const REUSE_SHARE = 0.05;
/** Values per lease: when it expires, each takes one write. */
const LEASE_VALUES = 1000;

/**
 * Computes when values with a time to live expire. Values written within `reuseSeconds` of each other share one expiry
 * time, as Kubernetes shares etcd leases: each lives at least as long as requested, and at most a twentieth, or
 * `reuseSeconds`, longer. Thousands of events then expire in a few batches instead of one by one. Worked example,
 * 3600 s shared for 60 s:
 *
 *     written at  0 s → expires at 3660 s      the first value of a lease has all of the extra time
 *     written at 59 s → expires at 3660 s      lives for 3601 s
 *     written at 60 s → expires at 3720 s      a new lease: the first one would expire too early
 */
export class Leases {
  readonly #reuseSeconds: number;
  #expiresAt = 0;
  #values = 0;
  #batch = 0;

  /** 0 disables sharing. */
  constructor(reuseSeconds: number) {
    this.#reuseSeconds = reuseSeconds;
  }

  /** Milliseconds since 1970. */
  expiresAt(ttlSeconds: number, now: number): number {
    const earliest = now + ttlSeconds * 1000;
    const extra = Math.min(this.#reuseSeconds, ttlSeconds * REUSE_SHARE) * 1000;
    const fits = earliest <= this.#expiresAt && this.#expiresAt <= earliest + extra;
    if (!fits || this.#values >= LEASE_VALUES) {
      this.startBatch();
      this.#expiresAt = earliest + extra;
    }
    this.#values++;
    return this.#expiresAt;
  }

  /** Number of the values' batch that `expiresAt` returned last; those of a batch expire together. */
  get batch(): number {
    return this.#batch;
  }

  /** The next value starts a batch. */
  startBatch(): void {
    this.#batch++;
    this.#expiresAt = 0;
    this.#values = 0;
  }
}
