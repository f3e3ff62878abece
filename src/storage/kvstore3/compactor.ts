/**
 * Compacts the history periodically. One of several servers, also Kubernetes', does it per interval: each
 * attempts the next write of a key, whose value is the revision to which the next interval compacts.
 */
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { CompareTarget, compactMethod, txnMethod } from "./protocol.ts";
import type { Servers } from "./servers.ts";

/** Kubernetes' API servers agree by this key, which is not an object's. */
export const COMPACT_REVISION_KEY = Buffer.from("compact_rev_key");

export interface EtcdCompactorOptions {
  readonly servers: Servers;
  readonly clock: Clock;
  readonly log: Logger;
  readonly intervalMs: number;
}

export class EtcdCompactor implements Disposable {
  readonly #options: EtcdCompactorOptions;
  #timer: Timer | undefined;
  #isClosed = false;
  /** The version of the key that this server last saw. */
  #version = 0;
  /** The store's revision at that time; 0 before the first interval. */
  #revision = 0;

  constructor(options: EtcdCompactorOptions) {
    this.#options = options;
    this.#arm();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.timer(this.#options.intervalMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    try {
      await this.#compact();
    } catch (error) {
      if (!this.#isClosed) this.#options.log.error("Failed to compact the store; retrying later", error);
    }
    this.#arm();
  }

  async #compact(): Promise<void> {
    const { servers } = this.#options;
    const revision = this.#revision;
    const response = await servers.call(
      txnMethod,
      {
        compare: [{ result: 0, target: CompareTarget.version, key: COMPACT_REVISION_KEY, version: this.#version }],
        success: [{ put: { key: COMPACT_REVISION_KEY, value: Buffer.from(String(revision)), lease: 0n } }],
        failure: [{ range: { key: COMPACT_REVISION_KEY } }],
      },
      { isRepeatable: false },
    );
    this.#revision = response.header?.revision ?? 0;
    if (response.succeeded !== true) {
      // Another server was first.
      this.#version = response.responses?.[0]?.range?.kvs?.[0]?.version ?? 0;
      return;
    }
    this.#version++;
    if (revision > 0) await servers.call(compactMethod, { revision });
  }
}
