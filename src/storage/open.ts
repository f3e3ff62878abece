import type { Connector } from "../client/transport/connector.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { StoreTlsFiles } from "./kvstore3/tls.ts";
import type { Store } from "./store.ts";

export interface OpenStoreOptions {
  /** The scheme names the engine: `level:///var/lib/svc/kvstore`, `memory://`, or some `https://host:port`. */
  readonly urls: readonly string[];
  /** Of connections to `https://` servers. */
  readonly tls?: StoreTlsFiles | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 turns compaction off. */
  readonly compactionIntervalMs: number;
  /** See `Leases`. */
  readonly leaseReuseSeconds?: number | undefined;
  /** Of a store on disk; unlimited when absent. */
  readonly quotaBytes?: number | undefined;
  /** Of a store on disk: whether writes of the key may wait for others, to share their sync. */
  readonly isDeferrable?: ((key: string) => boolean) | undefined;
  /** Interval at which the size of a remote store is read; 0 turns that off. */
  readonly statusIntervalMs?: number | undefined;
  /** How to connect to a remote store; undefined: directly. */
  readonly connector?: Connector | undefined;
}

/** Throws a RangeError for URLs that name no engine; else fails as the engine does. */
export async function openStore({ urls, ...options }: OpenStoreOptions): Promise<Store> {
  const [url = "", ...more] = urls;
  // Each engine is loaded when it is used; that on disk has native code, that for etcd a gRPC client.
  if (urls.length > 0 && urls.every((each) => /^https?:/.test(each))) {
    const { openEtcdStore } = await import("./kvstore3/kvstore3.ts");
    return await openEtcdStore({ ...options, urls });
  }
  if (more.length > 0) {
    throw new RangeError(
      `Cannot use stores "${urls.join(",")}": only http:// and https:// servers form a store together`,
    );
  }
  if (url === "memory://") return (await import("./memory.ts")).createMemoryStore(options);
  const path = /^level:\/\/(\/.+)$/.exec(url)?.[1];
  if (path === undefined) {
    throw new RangeError(
      `Cannot use store "${url}": it must be level:///path/to/directory, memory:// or https://host:port`,
    );
  }
  const { openLevelStore } = await import("./level/level.ts");
  return await openLevelStore({ ...options, path: decodeURIComponent(path) });
}
