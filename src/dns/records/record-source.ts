/** The cluster's records, from informers; until these have listed everything, from the file of the last run. */
import { serviceKind } from "../../api/core/service/kind.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { SharedInformers } from "../../client/informer/shared-informers.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { ClusterRecords } from "./cluster-records.ts";
import { readRecordsFile, writeRecordsFile } from "./records-file.ts";

export interface RecordSourceOptions {
  readonly informers: SharedInformers;
  readonly file: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * While records change, the file is written at this rate in bytes a second, but not more rarely than the longest
 * interval. It has a megabyte for each thousand services of ten endpoints.
 */
const WRITE_RATE = 10_000;
const INTERVAL_MS_MAX = 300_000;
/** Coalesces the changes of a start; the age of saved records of a small cluster. */
const SETTLE_MS = 5_000;
/** A failed write is repeated after this time, then after twice as long each time, up to the longest interval. */
const RETRY_MS_MIN = 5_000;

export class RecordSource implements AsyncDisposable {
  readonly #options: RecordSourceOptions;
  readonly #live = new ClusterRecords();
  readonly #subscriptions: readonly (() => void)[];
  #saved: ClusterRecords | undefined;
  #isSynced = false;
  #timer: Timer | undefined;
  /** No write begins earlier; on the monotonic clock. */
  #nextWriteAt = Number.NEGATIVE_INFINITY;
  #retryMs = RETRY_MS_MIN;
  #writing: Promise<void> = Promise.resolve();
  #isChanged = false;

  private constructor(options: RecordSourceOptions, saved: ClusterRecords | undefined) {
    const { informers, log } = options;
    this.#options = options;
    this.#saved = saved;
    const services = informers.of(serviceKind);
    const slices = informers.of(endpointSliceKind);
    const change = (apply: () => void): void => {
      apply();
      this.#scheduleWrite();
    };
    this.#subscriptions = [
      services.subscribe({
        put: (service) => change(() => this.#live.putService(service)),
        delete: (service) => change(() => this.#live.deleteService(service)),
      }),
      slices.subscribe({
        put: (slice, previous) => change(() => this.#live.putSlice(slice, previous)),
        delete: (slice) => change(() => this.#live.deleteSlice(slice)),
      }),
    ];
    Promise.all([services.synced, slices.synced])
      .then(() => {
        this.#isSynced = true;
        this.#saved = undefined;
        log.v(2)?.info("The DNS records are complete", { services: services.size, endpointSlices: slices.size });
        this.#scheduleWrite();
      })
      // The informers stop first when the program stops.
      .catch(() => {});
  }

  static async open(options: RecordSourceOptions): Promise<RecordSource> {
    const saved = await readRecordsFile(options.file).catch((error: unknown) => {
      options.log.warn("Cannot read the DNS records of the last run", { error: String(error) });
      return undefined;
    });
    return new RecordSource(options, saved);
  }

  /** Undefined: there are none yet. */
  get records(): ClusterRecords | undefined {
    return this.#isSynced ? this.#live : this.#saved;
  }

  /** Writes what changed since the last write. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#timer?.cancel();
    await this.#writing;
    this.#timer?.cancel();
    if (this.#isChanged && this.#isSynced) await this.#write();
  }

  #scheduleWrite(): void {
    this.#isChanged = true;
    if (this.#isSynced && this.#timer === undefined) this.#writeAfter(SETTLE_MS);
  }

  #writeAfter(milliseconds: number): void {
    const { clock } = this.#options;
    const delay = Math.max(milliseconds, this.#nextWriteAt - clock.monotonic());
    this.#timer = clock.timer(delay, () => {
      this.#timer = undefined;
      // The end of the write before determines when the next one may begin.
      this.#writing = this.#writing.then(async () => {
        if (this.#timer !== undefined) return;
        if (this.#nextWriteAt <= clock.monotonic()) await this.#write();
        if (this.#isChanged && this.#timer === undefined) this.#writeAfter(0);
      });
    });
  }

  async #write(): Promise<void> {
    const { clock, file, log } = this.#options;
    this.#isChanged = false;
    const began = clock.monotonic();
    try {
      const bytes = await writeRecordsFile(file, this.#live);
      this.#nextWriteAt = began + Math.min((bytes / WRITE_RATE) * 1000, INTERVAL_MS_MAX);
      this.#retryMs = RETRY_MS_MIN;
    } catch (error) {
      this.#isChanged = true;
      this.#nextWriteAt = clock.monotonic() + this.#retryMs;
      this.#retryMs = Math.min(this.#retryMs * 2, INTERVAL_MS_MAX);
      log.warn("Cannot write the DNS records, will retry", { file, error: String(error) });
    }
  }
}
