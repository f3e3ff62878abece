import type { Logger } from "../std/log/logger.ts";
import type { Clock, Timer } from "../std/time/clock.ts";
import { type SavedObjects, writeSavedObjects } from "./saved-objects.ts";

/** Between two writes of the file. */
const WRITE_MS = 300_000;
/** Coalesces the changes of a start. */
const SETTLE_MS = 5_000;

export interface SavedObjectsWriterOptions {
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The objects to write; undefined if there are none. */
  readonly collect: () => SavedObjects | undefined;
}

/** Writes the file of saved objects, seldom: flash memory wears out. */
export class SavedObjectsWriter {
  readonly #options: SavedObjectsWriterOptions;
  #timer: Timer | undefined;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: SavedObjectsWriterOptions) {
    this.#options = options;
  }

  /** Whether the file has objects of this run. */
  get hasWritten(): boolean {
    return this.#writtenAt !== Number.NEGATIVE_INFINITY;
  }

  /** Writes within `WRITE_MS`; all calls until then are one write. */
  schedule(): void {
    if (this.#timer !== undefined) return;
    const { clock } = this.#options;
    const delay = Math.max(SETTLE_MS, this.#writtenAt + WRITE_MS - clock.monotonic());
    this.#timer = clock.timer(delay, () => {
      this.#writing = this.#write();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Writes after the writes before. */
  writeNow(): void {
    this.#writing = this.#writing.then(() => this.#write());
  }

  /** Resolves when what was scheduled is written. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writing;
    if (this.#timer !== undefined) await this.#write();
  }

  async #write(): Promise<void> {
    const { clock, file, log, collect } = this.#options;
    this.#timer = undefined;
    const objects = collect();
    this.#writtenAt = objects === undefined ? Number.NEGATIVE_INFINITY : clock.monotonic();
    await writeSavedObjects(file, objects ?? { policies: [], namespaces: [], pods: [] }).catch((error: unknown) => {
      log.warn("Cannot write the network policies", { file, error: String(error) });
    });
  }
}
