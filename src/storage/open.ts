import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { createMemoryStore } from "./memory.ts";
import type { Store } from "./store.ts";

export interface OpenStoreOptions {
  /** `level:///var/lib/svc/kvstore` or `memory://`: the scheme names the engine. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 turns compaction off. */
  readonly compactionIntervalMs: number;
  /** See `Leases`. */
  readonly leaseReuseSeconds?: number | undefined;
  /** Of a store on disk; unlimited when absent. */
  readonly quotaBytes?: number | undefined;
}

/** Throws a RangeError for a URL of an unknown engine; else fails as the engine does. */
export async function openStore({ url, ...options }: OpenStoreOptions): Promise<Store> {
  if (url === "memory://") return createMemoryStore(options);
  const path = /^level:\/\/(\/.+)$/.exec(url)?.[1];
  if (path === undefined) {
    throw new RangeError(`Cannot use store "${url}": it must be level:///path/to/directory or memory://`);
  }
  // Loads native code, which a store in memory does not need.
  const { openLevelStore } = await import("./level/level.ts");
  return await openLevelStore({ ...options, path: decodeURIComponent(path) });
}
