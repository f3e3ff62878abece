/** Messages between the main thread of an API server and its workers, apart from those of stores. */

import type { MessagePort } from "node:worker_threads";
import type { LogOptions } from "../../std/log/logger.ts";
import type { StoreAccess } from "../../storage/worker-engine/remote-store.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { TunnelChange } from "../tunnels/tunnel-exchange.ts";
import type { MetricsSnapshot } from "./metric-snapshots.ts";

/** The first word of a worker's command line. */
export const WORKER_COMMAND = "apiserver-worker";

/** The data that a worker receives at its start. */
export interface WorkerStart {
  /** From 1 on. */
  readonly index: number;
  readonly config: ApiServerConfig;
  readonly log: Partial<LogOptions>;
  /** Identifies the server among its peers; the name of the host when absent. */
  readonly hostName?: string | undefined;
}

export type ToWorker =
  /** Begins the start: the keys and certificates of the server exist, and its stores are open. */
  | { readonly type: "open"; readonly stores: ReadonlyMap<string, StoreAccess> }
  | { readonly type: "listen"; readonly port: number }
  /** The main thread has created the objects of the control plane. */
  | { readonly type: "serve" }
  /** All threads serve. */
  | { readonly type: "ready" }
  | { readonly type: "stop" }
  /** The requests of all threads have ended. */
  | { readonly type: "drained" }
  | { readonly type: "verbosity"; readonly level: number }
  | { readonly type: "resetMetrics" }
  | { readonly type: "collect" }
  | { readonly type: "tunnel"; readonly change: TunnelChange }
  /** The node has opened its tunnel in another thread. */
  | { readonly type: "replaceTunnel"; readonly nodeName: string }
  | ConnectTunnel
  | { readonly type: "result"; readonly id: number; readonly result: unknown; readonly error: string | undefined };

export type FromWorker =
  /** The worker has loaded its code, can listen, listens, serves. */
  | { readonly type: "reached"; readonly step: WorkerStep }
  /** The start failed: one sentence for an operator. */
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "verbosity"; readonly level: number }
  | { readonly type: "resetMetrics" }
  | { readonly type: "collected"; readonly metrics: MetricsSnapshot }
  | { readonly type: "tunnel"; readonly change: TunnelChange }
  | ConnectTunnel
  /** The worker needs the open tunnels of the other threads. */
  | { readonly type: "listTunnels" }
  /** Calls, with a result each. */
  | { readonly type: "collectOthers"; readonly id: number }
  | { readonly type: "appendAudit"; readonly id: number; readonly text: string };

/** Opens a connection through the tunnel of a node; the port is transferred. */
interface ConnectTunnel {
  readonly type: "connectTunnel";
  readonly nodeName: string;
  readonly port: MessagePort;
}

export type WorkerStep = "loaded" | "prepared" | "listening" | "serving" | "drained";
