/** What the API servers of several threads of one process share. */
import type { AuditLines } from "../../audit/log-sink.ts";
import type { Store } from "../../storage/store.ts";
import type { LocalTunnels, OtherTunnels } from "../tunnels/tunnel-exchange.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";

/** The end of a thread: `WorkerPool` in the main thread, `PoolLink` in a worker. */
export interface ThreadLink {
  /** Whether this thread has what exists once in a process: controllers, objects of the control plane, their repair. */
  readonly isMain: boolean;
  /** Opens the store with `open` in the main thread; workers use that one. Remote stores are opened by each thread. */
  openStore(urls: readonly string[], open: () => Promise<Store>): Promise<Store>;
  /** Opens the file with `open` in the main thread, which writes the lines of all threads. */
  openAuditLog(open: () => Promise<AuditLines>): Promise<AuditLines>;
  /** Sets what `/metrics` of another thread contains of this one. */
  serveMetrics(take: () => MetricsSnapshot, reset: () => void): void;
  /** The metrics of the other threads. */
  collectMetrics(): Promise<readonly MetricsSnapshot[]>;
  /** Sets the metrics of the other threads to zero. */
  resetMetrics(): void;
  /** Gives other threads the tunnels of agents that end in this one, and the other way round. */
  shareTunnels(local: LocalTunnels): OtherTunnels;
}

/** A store that the main thread owns. */
export function isEmbeddedStore(urls: readonly string[]): boolean {
  return !urls.some((url) => /^https?:/.test(url));
}
