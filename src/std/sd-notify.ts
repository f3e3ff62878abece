import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Talks to the service manager; every method does nothing when the process was not started by one. */
export interface Notifier extends AsyncDisposable {
  ready(status?: string): Promise<void>;
  stopping(): Promise<void>;
  status(text: string): Promise<void>;
  /** Sends WATCHDOG=1 every half of WATCHDOG_USEC while `healthy` resolves with true. */
  watchdog(healthy: () => Promise<boolean>): void;
}

export declare function createNotifier(options: NotifierOptions): Notifier;
