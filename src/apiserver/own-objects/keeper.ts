import { aborted } from "../../std/aborted.ts";
import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";

/** Something that is done again and again. */
export interface Chore {
  /** For the log: what could not be kept. */
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<void>;
}

export interface Keeper {
  /** Resolves with the signal; a chore that runs then may end later, unheard. */
  readonly ended: Promise<void>;
}

/** Does every chore at its pace, one that fails again at its next turn, until the signal aborts. */
export function keep(chores: readonly Chore[], clock: Clock, log: Logger, signal: AbortSignal): Keeper {
  for (const chore of chores) void repeat(chore, clock, log, signal);
  // A store that does not answer does not keep the server from stopping.
  return { ended: aborted(signal) };
}

/** Resolves whatever comes of it. */
export async function attempt({ name, run }: Chore, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!signal.aborted) log.error(`Cannot keep ${name}; trying again`, error);
  }
}

async function repeat(chore: Chore, clock: Clock, log: Logger, signal: AbortSignal): Promise<void> {
  for (;;) {
    await clock.sleep(chore.everyMs, signal).catch(() => {});
    if (signal.aborted) return;
    await attempt(chore, log, signal);
  }
}
