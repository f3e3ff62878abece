import type { BackoffOptions } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { RandomSource } from "./random.ts";

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Keys worked on at the same time; one key never twice at once. */
  readonly concurrency: number;
  /** Delay before a key whose work failed is tried again. */
  readonly backoff: BackoffOptions;
  /** Works on a key. A rejection is reported and the key is tried again after its back-off. */
  readonly work: (key: string, signal: AbortSignal) => Promise<void>;
  readonly onError: (key: string, error: unknown) => void;
}

/** Keys to be worked on: each at most once in the queue, never twice at once, again after back-off when it failed. */
export declare class WorkQueue implements AsyncDisposable {
  constructor(options: WorkQueueOptions);
  /** Queues the key; does nothing if it waits already. A key being worked on runs once more afterwards. */
  add(key: string): void;
  addAfter(key: string, milliseconds: number): void;
  /** Drops the key's waiting work and its back-off. */
  forget(key: string): void;
  /** Keys waiting, delayed ones included, and running. */
  get size(): number;
  /** Resolves when nothing waits to run now and nothing runs; delayed keys do not count. */
  idle(): Promise<void>;
  /** Stops: aborts running work and waits for it. */
  [Symbol.asyncDispose](): Promise<void>;
}
