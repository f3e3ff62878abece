import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { StoreFeed } from "../../storage/watch/feed.ts";
import { follow } from "../../storage/watch/follow.ts";

/** A reconciler that runs at an interval, and earlier when an object that it maintains changes. */
export interface PeriodicReconciler {
  /** What it reconciles, for the log: "Cannot reconcile NAME". */
  readonly name: string;
  readonly everyMs: number;
  /** Store keys, or key prefixes that end with a slash. The deletion of one of them triggers the reconciler. */
  readonly ensuredKeys?: readonly string[] | undefined;
  /** Store keys or prefixes; every change of one of them triggers the reconciler. */
  readonly watchedKeys?: readonly string[] | undefined;
  /** Milliseconds between a change and the run that it triggers; 500 when absent. */
  readonly delayMs?: number | undefined;
  /** Registers the callback of another source of changes, such as a reloaded file. */
  readonly onChange?: ((changed: () => void) => void) | undefined;
  reconcile(): Promise<void>;
}

export interface ReconcilerOptions {
  readonly feed: StoreFeed;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * The delay between a change and the run that it triggers: related objects are deleted by then, and objects that are
 * deleted repeatedly are recreated at this rate.
 */
const RETRIGGER_DELAY_MS = 500;

export interface RunningReconcilers {
  /** Resolves when the signal aborts, without waiting for a run in progress. */
  readonly ended: Promise<void>;
}

/** Runs every reconciler at its interval until the signal aborts. A failed run is repeated at the next interval. */
export function runReconcilers(
  reconcilers: readonly PeriodicReconciler[],
  options: ReconcilerOptions,
): RunningReconcilers {
  for (const reconciler of reconcilers) void reconcilePeriodically(reconciler, options);
  // Does not wait for runs in progress: an unresponsive store must not delay the shutdown.
  return { ended: waitForAbort(options.signal) };
}

/** Runs the reconciler once and logs a failure. Never rejects. */
export async function reconcileOnce(
  { name, reconcile }: PeriodicReconciler,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  try {
    await reconcile();
  } catch (error) {
    if (!signal.aborted) log.error(`Cannot reconcile ${name}; retrying`, error);
  }
}

async function reconcilePeriodically(reconciler: PeriodicReconciler, options: ReconcilerOptions): Promise<void> {
  const { clock, log, signal } = options;
  const changes = new PendingChange();
  for (const key of reconciler.ensuredKeys ?? []) void changes.watch(key, "deletions", options);
  for (const key of reconciler.watchedKeys ?? []) void changes.watch(key, "all", options);
  reconciler.onChange?.(() => changes.mark());
  for (;;) {
    const wakeSignal = new AbortController();
    const woken = AbortSignal.any([signal, wakeSignal.signal]);
    await Promise.race([clock.sleep(reconciler.everyMs, woken).catch(() => {}), changes.next(woken)]);
    wakeSignal.abort();
    if (changes.take()) await clock.sleep(reconciler.delayMs ?? RETRIGGER_DELAY_MS, signal).catch(() => {});
    if (signal.aborted) return;
    await reconcileOnce(reconciler, log, signal);
  }
}

/** A flag that watches set and the reconcile loop takes. */
class PendingChange {
  readonly #wakeup = new Wakeup();
  #any = false;

  mark(): void {
    this.#any = true;
    this.#wakeup.notify();
  }

  async next(signal: AbortSignal): Promise<void> {
    if (!this.#any) await this.#wakeup.wait(signal);
  }

  take(): boolean {
    const pending = this.#any;
    this.#any = false;
    return pending;
  }

  /** Resolves when the signal aborts. */
  async watch(key: string, which: "deletions" | "all", options: ReconcilerOptions): Promise<void> {
    const prefix = key.slice(0, key.lastIndexOf("/") + 1);
    await follow({
      ...options,
      prefix,
      follower: {
        // The initial list is no change. Deletions during a gap of the feed are repaired at the next interval.
        startList: () => ({ add: () => {}, complete: () => {} }),
        onChange: (event) => {
          const isOther = key !== prefix && (event.type === "put" ? event.item.key : event.key) !== key;
          if (isOther || (which === "deletions" && event.type !== "delete")) return;
          this.mark();
        },
      },
    });
  }
}
