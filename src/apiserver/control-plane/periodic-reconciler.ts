import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { Wakeup } from "../../std/async/wakeup.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { StoreFeed } from "../../storage/watch/feed.ts";
import { follow } from "../../storage/watch/follow.ts";

/** Something that is done again and again. */
export interface PeriodicReconciler {
  /** For the log: what could not be kept. */
  readonly name: string;
  readonly everyMs: number;
  /** Keys in the store, or with a slash at the end what lies below: when one is deleted the chore is done soon. */
  readonly ensuredKeys?: readonly string[] | undefined;
  /** The same, for what is to be looked at whenever it changes. */
  readonly watchedKeys?: readonly string[] | undefined;
  /** Tells of what else may change what is to be there. */
  readonly onChange?: ((changed: () => void) => void) | undefined;
  reconcile(): Promise<void>;
}

export interface ReconcilerOptions {
  readonly feed: StoreFeed;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What goes with a deleted object has gone by then, and what is deleted again and again is made at this pace. */
const RETRIGGER_DELAY_MS = 500;

export interface RunningReconcilers {
  /** Resolves with the signal; a chore that runs then may end later, unheard. */
  readonly ended: Promise<void>;
}

/** Does every chore at its pace, one that fails again at its next turn, until the signal aborts. */
export function runReconcilers(chores: readonly PeriodicReconciler[], options: ReconcilerOptions): RunningReconcilers {
  for (const chore of chores) void reconcilePeriodically(chore, options);
  // A store that does not answer does not keep the server from stopping.
  return { ended: waitForAbort(options.signal) };
}

/** Resolves whatever comes of it. */
export async function reconcileOnce({ name, reconcile: run }: PeriodicReconciler, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!signal.aborted) log.error(`Cannot keep ${name}; trying again`, error);
  }
}

async function reconcilePeriodically(chore: PeriodicReconciler, options: ReconcilerOptions): Promise<void> {
  const { clock, log, signal } = options;
  const changes = new PendingChange();
  for (const key of chore.ensuredKeys ?? []) void changes.watch(key, "deletions", options);
  for (const key of chore.watchedKeys ?? []) void changes.watch(key, "all", options);
  chore.onChange?.(() => changes.mark());
  for (;;) {
    const wakeSignal = new AbortController();
    const over = AbortSignal.any([signal, wakeSignal.signal]);
    await Promise.race([clock.sleep(chore.everyMs, over).catch(() => {}), changes.next(over)]);
    wakeSignal.abort();
    if (changes.take()) await clock.sleep(RETRIGGER_DELAY_MS, signal).catch(() => {});
    if (signal.aborted) return;
    await reconcileOnce(chore, log, signal);
  }
}

/** Remembers that something has happened until it is taken. */
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
        // Of what is there at first all has been made; what goes while the feed stands still waits for its turn.
        listed: () => {},
        change: (event) => {
          const isOther = key !== prefix && (event.type === "put" ? event.item.key : event.key) !== key;
          if (isOther || (which === "deletions" && event.type !== "delete")) return;
          this.mark();
        },
      },
    });
  }
}
