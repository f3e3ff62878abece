/** The handlers of `metrics.k8s.io`, whose code is loaded with the first request. */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Registry } from "../../registry/registry.ts";
import { lazy } from "../../std/async/lazy.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ResourceHandler } from "../handlers/target.ts";
import type { AgentConnections } from "../proxy/agent-connections.ts";

export interface MetricsApiOptions {
  readonly pods: Registry<Pod>;
  readonly nodes: Registry<Node>;
  readonly agents: Pick<AgentConnections, "get">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends the scraper. */
  readonly resources: AsyncDisposableStack;
}

const HANDLERS = ["get PodMetrics", "list PodMetrics", "get NodeMetrics", "list NodeMetrics"] as const;

/** By verb and kind. */
export function createMetricsApi(options: MetricsApiOptions): Readonly<Record<string, ResourceHandler>> {
  const { pods, nodes, agents, clock, log } = options;
  // The stack of the start is moved before the first request.
  const resources = options.resources.use(new AsyncDisposableStack());
  const handlers = lazy(async () => {
    const { AgentScraper } = await import("./agent-scraper.ts");
    const { createMetricsHandlers, listNodes } = await import("./metrics-handlers.ts");
    const nodesOf = (signal: AbortSignal) => listNodes(nodes, signal);
    const scraper = resources.use(new AgentScraper({ nodes: nodesOf, agents, clock, log }));
    return createMetricsHandlers({ pods, nodes, scraper });
  });
  const handle =
    (name: (typeof HANDLERS)[number]): ResourceHandler =>
    async (...request) =>
      await (await handlers())[name](...request);
  return Object.fromEntries(HANDLERS.map((name) => [name, handle(name)]));
}
