/** What operators look at beside the API: metrics, profiles, flags, status. */
import type { Clock } from "../../std/clock.ts";
import type { ApiServerConfig } from "../config.ts";
import type { Route } from "../resources/routes.ts";
import { metricsPage, resetMetrics } from "./metrics-page.ts";
import type { ServerMetrics } from "./server-metrics.ts";

export interface OperatorPage {
  /** A pattern of the router. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly answer: Route;
  /** Whether `/` names it. */
  readonly listed: boolean;
}

export interface PageDeps {
  readonly metrics: ServerMetrics;
  readonly clock: Clock;
}

export function operatorPages(config: ApiServerConfig, { metrics }: PageDeps): readonly OperatorPage[] {
  const page = (path: string, answer: Route, methods = ["GET"], listed = true): OperatorPage => {
    return { path, methods, answer, listed };
  };
  const all = [metrics.registry, metrics.slis];
  const { profiling } = config.observe;
  return [
    page("/metrics", async ({ request }) => metricsPage(all, request.headers.accept)),
    page("/metrics/slis", async ({ request }) => metricsPage([metrics.slis], request.headers.accept)),
    ...(profiling
      ? [
          page("/metrics", async () => resetMetrics([metrics.registry]), ["DELETE"], false),
          page("/metrics/slis", async () => resetMetrics([metrics.slis]), ["DELETE"], false),
        ]
      : []),
  ];
}
