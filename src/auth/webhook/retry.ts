/** How Kubernetes' servers ask a webhook whose answer they cannot do without. */
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RandomSource } from "../../std/crypto/random.ts";

/** Nobody answered, or somebody who cannot now. */
export class Passing extends Error {
  override readonly name = "Passing";
}

export interface PatienceOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Whether asking again may help; where the failure is a `Passing`, if absent. */
  readonly isPassing?: (error: unknown) => boolean;
  /** Before the second question; each further wait is half as long again. 500 and 10,000 if absent. */
  readonly initialMs?: number;
  readonly maxMs?: number;
  readonly signal?: AbortSignal | undefined;
}

const QUESTIONS_MAX = 5;

/** Rejects with what the last question did. */
export async function askPatiently<T>(ask: () => Promise<T>, options: PatienceOptions): Promise<T> {
  const { clock, random, isPassing = (error) => error instanceof Passing, signal } = options;
  const { initialMs = 500, maxMs = 10_000 } = options;
  const backoff = new Backoff({ initialMs, maxMs, factor: 1.5, jitter: 0.2 }, random);
  for (let questions = 1; ; questions++) {
    try {
      return await ask();
    } catch (error) {
      if (questions === QUESTIONS_MAX || !isPassing(error)) throw error;
    }
    await clock.sleep(backoff.next(), signal);
  }
}
