import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
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
  // Each engine is loaded when it is used; that on disk has native code.
  if (url === "memory://") return (await import("./memory.ts")).createMemoryStore(options);
  const path = /^level:\/\/(\/.+)$/.exec(url)?.[1];
  if (path === undefined) {
    throw new RangeError(`Cannot use store "${url}": it must be level:///path/to/directory or memory://`);
  }
  const { openLevelStore } = await import("./level/level.ts");
  return await openLevelStore({ ...options, path: decodeURIComponent(path) });
}
