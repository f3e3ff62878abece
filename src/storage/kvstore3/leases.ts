/** Leases of values with a time to live; those written within a minute share one. */
import type { Clock } from "../../std/time/clock.ts";
import { Leases } from "../leases.ts";
import { leaseGrantMethod } from "./protocol.ts";
import type { Servers } from "./servers.ts";

export class EtcdLeases {
  readonly #servers: Servers;
  readonly #clock: Clock;
  readonly #shared: Leases;
  #current: { readonly batch: number; readonly id: Promise<bigint> } | undefined;

  /** `reuseSeconds` as for `Leases`. */
  constructor(servers: Servers, clock: Clock, reuseSeconds: number) {
    this.#servers = servers;
    this.#clock = clock;
    this.#shared = new Leases(reuseSeconds);
  }

  /** The lease of a value that is written now. Rejects with a `CallError`. */
  leaseFor(ttlSeconds: number): Promise<bigint> {
    // As etcd, whose leases do not depend on the time of day.
    const now = this.#clock.monotonic();
    const expiresAt = this.#shared.expiresAt(ttlSeconds, now);
    const { batch } = this.#shared;
    if (this.#current?.batch === batch) return this.#current.id;
    const id = this.#grant(Math.ceil((expiresAt - now) / 1000));
    this.#current = { batch, id };
    id.catch(() => this.forget());
    return id;
  }

  /** The next value gets a new lease: the server has lost the present one. */
  forget(): void {
    this.#current = undefined;
    this.#shared.startBatch();
  }

  async #grant(ttl: number): Promise<bigint> {
    return (await this.#servers.call(leaseGrantMethod, { ttl, id: 0n })).id ?? 0n;
  }
}
