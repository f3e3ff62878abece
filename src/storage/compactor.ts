/** Compacts the history of a store periodically; used by all engines. */

import type { Logger } from "../std/log/logger.ts";
import type { Clock, Timer } from "../std/time/clock.ts";
import type { Revision } from "./store.ts";

export interface CompactorOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly intervalMs: number;
  readonly retentionMs: number;
  readonly current: () => Revision;
  readonly compact: (before: Revision) => Promise<void>;
}

/** Compacts every `intervalMs` to the revision that was current `retentionMs` ago. */
export class Compactor {
  readonly #options: CompactorOptions;
  /** The revision at each tick of the retention time. */
  #samples: { readonly at: number; readonly revision: Revision }[] = [];
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: CompactorOptions) {
    this.#options = options;
    this.#sample();
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    if (this.#closed) return;
    this.#timer = this.#options.clock.timer(this.#options.intervalMs, () => void this.#tick());
  }

  #sample(): void {
    this.#samples.push({ at: this.#options.clock.monotonic(), revision: this.#options.current() });
  }

  async #tick(): Promise<void> {
    const { clock, log, retentionMs, compact } = this.#options;
    const old = this.#samples.findLastIndex((sample) => sample.at <= clock.monotonic() - retentionMs);
    const sample = this.#samples[old];
    try {
      if (sample !== undefined) await compact(sample.revision);
      this.#samples = this.#samples.slice(old + 1);
    } catch (error) {
      if (!this.#closed) log.error("Failed to compact the store; retrying later", error);
    }
    this.#sample();
    this.#arm();
  }
}
