import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";
import type { Store } from "../store.ts";

export interface LevelStoreOptions {
  /** The directory that holds the database; made when missing. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often history is compacted; 0 turns compaction off. */
  readonly compactionIntervalMs: number;
  /** History younger than this survives compaction; `compactionIntervalMs` when absent. */
  readonly historyRetentionMs?: number | undefined;
}

/** Fails with a `StoreError` of code `locked`, `corrupt` or `newer-format`, in one sentence for an operator. */
export declare function openLevelStore(options: LevelStoreOptions): Promise<Store>;
