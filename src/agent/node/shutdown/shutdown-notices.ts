/** Sources of shutdown notices: they announce the shutdown of the machine, and delay it for the agent. */

export interface ShutdownNotices {
  /** Makes the machine wait for that long once it shuts down. Rejects when it does not wait so long. */
  prepare(delayMs: number): Promise<void>;
  /** Resolves on abort; rejects when the connection ends. */
  watch(listener: ShutdownListener, signal: AbortSignal): Promise<void>;
  /** The machine waits until the lock is released; undefined where nothing can be locked. */
  inhibit(): Promise<InhibitorLock | undefined>;
}

export interface ShutdownListener {
  /** From now on no notice is missed. */
  onWatching(): void;
  /** True when the machine begins to shut down, false when it does not any more. */
  onNotice(isShuttingDown: boolean): void;
}

export interface InhibitorLock {
  release(): Promise<void>;
}

/**
 * For machines without systemd-logind: their shutdown script sends this signal, and waits until the state file of the
 * shutdown has an end. init's convention for a power failure.
 */
export const SHUTDOWN_SIGNAL = "SIGPWR";

export function createSignalNotices(emitter: Pick<NodeJS.Process, "on" | "off"> = process): ShutdownNotices {
  return {
    prepare: async () => {},
    inhibit: async () => undefined,
    watch({ onWatching, onNotice }, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const notify = (): void => onNotice(true);
      emitter.on(SHUTDOWN_SIGNAL, notify);
      onWatching();
      signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
      return promise.finally(() => emitter.off(SHUTDOWN_SIGNAL, notify));
    },
  };
}
