/**
 * Deletes the resource slices of drivers that are not registered: pods must not be scheduled for devices that nothing
 * on the node can prepare. A driver that runs publishes its slices again.
 */
import { betaResourceSliceKind } from "../../../api/resource/flat-versions/kinds.ts";
import type { Client } from "../../../client/client.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { Backoff } from "../../../std/time/backoff.ts";
import type { Clock } from "../../../std/time/clock.ts";

export interface SliceCleanerOptions {
  readonly client: Pick<Client, "deleteCollection">;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

/** Kubernetes' time for a driver to come back, such as a container that restarts. */
const GRACE_MS = 30_000;
const RETRY = { initialMs: 1_000, maxMs: 5 * 60_000, jitter: 0.2 };

/** Slices of all drivers. */
const ALL = "";

export class SliceCleaner implements AsyncDisposable {
  readonly #options: SliceCleanerOptions;
  /** By driver. As many as there were sockets of drivers. */
  readonly #pending = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>();

  constructor(options: SliceCleanerOptions) {
    this.#options = options;
    // No driver has registered yet.
    this.#start(ALL, 0);
  }

  driverRegistered(name: string): void {
    this.#pending.get(name)?.stop.abort();
  }

  driverDeregistered(name: string): void {
    if (!this.#pending.has(name)) this.#start(name, GRACE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pending = [...this.#pending.values()];
    for (const { stop } of pending) stop.abort();
    await Promise.all(pending.map(({ done }) => done));
  }

  #start(driver: string, delayMs: number): void {
    const stop = new AbortController();
    const entry = { stop, done: this.#clean(driver, delayMs, stop.signal).finally(() => this.#end(driver, stop)) };
    this.#pending.set(driver, entry);
    // A driver that has come back may go again before this one has ended.
    stop.signal.addEventListener("abort", () => this.#end(driver, stop), { once: true });
  }

  #end(driver: string, stop: AbortController): void {
    if (this.#pending.get(driver)?.stop === stop) this.#pending.delete(driver);
  }

  /** Never rejects. */
  async #clean(driver: string, delayMs: number, signal: AbortSignal): Promise<void> {
    const { client, nodeName, clock, random, log } = this.#options;
    const backoff = new Backoff(RETRY, random);
    const fieldSelector = `spec.nodeName=${nodeName}${driver === ALL ? "" : `,spec.driver=${driver}`}`;
    const sleep = (ms: number): Promise<void> => clock.sleep(ms, signal).catch(() => undefined);
    if (delayMs > 0) await sleep(delayMs);
    while (!signal.aborted) {
      try {
        await client.deleteCollection(betaResourceSliceKind, { fieldSelector }, signal);
        log.v(3)?.info("Deleted ResourceSlices", { fieldSelector });
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.v(3)?.info("Deleting ResourceSlice failed, retrying", { fieldSelector, error: String(error) });
        await sleep(backoff.next());
      }
    }
  }
}
