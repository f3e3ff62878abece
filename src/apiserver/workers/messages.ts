/** Messages between the main thread of an API server and its workers, apart from those of stores. */

import type { LogOptions } from "../../std/log/logger.ts";
import type { StoreAccess } from "../../storage/worker-engine/remote-store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";

/** The first word of a worker's command line. */
export const WORKER_COMMAND = "apiserver-worker";

/** What a worker starts with. */
export interface WorkerStart {
  /** From 1 on. */
  readonly index: number;
  readonly config: ApiServerConfig;
  readonly log: Partial<LogOptions>;
}

export type ToWorker =
  /** Begins the start: the keys and certificates of the server exist, and its stores are open. */
  | { readonly type: "open"; readonly stores: ReadonlyMap<string, StoreAccess> }
  | { readonly type: "listen"; readonly port: number }
  /** The main thread has created the objects of the control plane. */
  | { readonly type: "serve" }
  | { readonly type: "stop" }
  | { readonly type: "verbosity"; readonly level: number }
  | { readonly type: "resetMetrics" }
  | { readonly type: "collect"; readonly id: number }
  | { readonly type: "result"; readonly id: number; readonly result: unknown; readonly error: string | undefined };

export type FromWorker =
  /** The worker has loaded its code, can listen, listens, serves. */
  | { readonly type: "reached"; readonly step: WorkerStep }
  /** The start failed: one sentence for an operator. */
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "verbosity"; readonly level: number }
  | { readonly type: "resetMetrics" }
  | { readonly type: "collected"; readonly id: number; readonly metrics: MetricsSnapshot }
  /** Calls, with a result each. */
  | { readonly type: "collectOthers"; readonly id: number }
  | { readonly type: "appendAudit"; readonly id: number; readonly text: string };

export type WorkerStep = "loaded" | "prepared" | "listening" | "serving";
