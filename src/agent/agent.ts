/** The node agent put together: start order and drain order. */
import type { Transport } from "../client/client.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { AgentConfig } from "./agent-config.ts";

export type { AgentConfig } from "./agent-config.ts";

export interface AgentDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** To the API server; made from `svcconfig` when absent. */
  readonly transport?: Transport;
}

export interface RunningAgent {
  /** Where the HTTPS server listens; undefined when it is off. */
  readonly address: { readonly host: string; readonly port: number } | undefined;
  /** Resolves when the node is registered and reported Ready for the first time; rejects if the agent closes before. */
  ready(): Promise<void>;
  /** Containers keep running unless `stopPods`. Idempotent. */
  close(options?: { readonly stopPods?: boolean }): Promise<void>;
}

/** Rejects with an operator's message when the machine or the configuration does not allow a start. */
export async function startAgent(config: AgentConfig, deps: AgentDeps): Promise<RunningAgent> {
  deps.log.v(2)?.info("Starting node agent", { node: config.nodeName });
  throw new Error(`Cannot start agent ${config.nodeName}: its parts are not assembled`);
}
