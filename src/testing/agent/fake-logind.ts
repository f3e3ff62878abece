/** logind as the agent sees it: its delay locks and its notices. */
import type { InhibitorLock, ShutdownListener, ShutdownNotices } from "../../agent/node/shutdown/shutdown-notices.ts";

export class FakeLogind implements ShutdownNotices {
  /** The next preparations fail with these. */
  readonly failures: Error[] = [];
  /** Locks that are held. */
  locks = 0;
  /** How long a shutdown waits for locks. */
  delayMs = 0;
  #watcher: { readonly notify: (isShuttingDown: boolean) => void; readonly end: (error: Error) => void } | undefined;

  get isWatched(): boolean {
    return this.#watcher !== undefined;
  }

  async prepare(delayMs: number): Promise<void> {
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    this.delayMs = delayMs;
  }

  async watch({ onNotice: notify, onWatching }: ShutdownListener, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#watcher = { notify, end: reject };
    onWatching();
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
    await promise.finally(() => {
      this.#watcher = undefined;
    });
  }

  async inhibit(): Promise<InhibitorLock> {
    this.locks++;
    let isHeld = true;
    return {
      release: async () => {
        if (isHeld) this.locks--;
        isHeld = false;
      },
    };
  }

  /** PrepareForShutdown. */
  notify(isShuttingDown: boolean): void {
    this.#watcher?.notify(isShuttingDown);
  }

  disconnect(): void {
    this.#watcher?.end(new Error("the connection to logind ended"));
  }
}
