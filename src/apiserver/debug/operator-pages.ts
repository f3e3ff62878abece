/** The pages for operators: metrics, profiles, flags and status. */

import type { HttpResponse } from "../../http/message.ts";
import { metricsResponse, resetMetrics } from "../../http/metrics/metrics-page.ts";
import { flagz, statusz } from "../../http/zpages.ts";
import { lazy } from "../../std/async/lazy.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { FlowController } from "../fairness/flow-controller.ts";
import type { Route } from "../handlers/routes.ts";
import type { ServerMetrics } from "../metrics/server-metrics.ts";
import type { ThreadLink } from "../workers/thread-link.ts";
import type { DebugEndpoints } from "./debug-endpoints.ts";
import { createDebugDumps } from "./flow-control-dumps.ts";

export interface OperatorPage {
  /** A pattern of the router. */
  readonly path: string;
  readonly methods: readonly string[];
  readonly respond: Route;
  /** Whether `/` lists it. */
  readonly listed: boolean;
}

export interface OperatorPageDeps {
  readonly metrics: ServerMetrics;
  readonly debugEndpoints: DebugEndpoints;
  readonly clock: Clock;
  /** Undefined: priority and fairness is off. */
  readonly flowController: FlowController | undefined;
  /** Undefined: the server has one thread. */
  readonly threads?: ThreadLink | undefined;
}

/** The component name on the pages, as in Kubernetes. */
const COMPONENT = "kube-apiserver";

export function createOperatorPages(config: ApiServerConfig, deps: OperatorPageDeps): readonly OperatorPage[] {
  return [
    ...createMetricPages(config, deps),
    ...createProfilePages(config, deps),
    ...createZPages(config, deps),
    ...createFlowControlPages(deps),
  ];
}

function createMetricPages(
  { observability }: ApiServerConfig,
  { metrics, threads }: OperatorPageDeps,
): readonly OperatorPage[] {
  const all = [metrics.registry, metrics.slis];
  const shared =
    threads === undefined
      ? undefined
      : lazy(async () => new (await import("../workers/shared-metrics.ts")).SharedMetrics(metrics, threads));
  // Other threads take the metrics of this one as soon as it serves.
  void shared?.();
  const pagesFor = (path: string, registries: typeof all): OperatorPage[] => {
    const methods = ["GET", "POST", "PUT", "PATCH", "OPTIONS", "TRACE", ...(observability.profiling ? [] : ["DELETE"])];
    const show: Route = async ({ request }) => {
      const shownRegistries = shared === undefined ? registries : await (await shared()).merge(registries);
      return metricsResponse(shownRegistries, request.headers.accept);
    };
    const shown = page(path, show, methods);
    const resetAll: Route = async () => {
      threads?.resetMetrics();
      return resetMetrics(registries);
    };
    // Only with profiling: a reset confuses the rates that scrapers compute.
    const reset = page(path, resetAll, ["DELETE"], false);
    return observability.profiling ? [shown, reset] : [shown];
  };
  return [...pagesFor("/metrics", all), ...pagesFor("/metrics/slis", [metrics.slis])];
}

function createProfilePages(
  { observability }: ApiServerConfig,
  { debugEndpoints }: OperatorPageDeps,
): readonly OperatorPage[] {
  if (!observability.profiling) return [];
  return debugEndpoints.pages.map(({ path, methods, respond }) =>
    page(
      path,
      ({ info, request }) => (info.path === PROFILES ? redirectToProfiles() : respond(request)),
      methods,
      false,
    ),
  );
}

const PROFILES = "/debug/pprof";

async function redirectToProfiles(): Promise<HttpResponse> {
  const headers = { location: `${PROFILES}/`, "content-type": "text/html; charset=utf-8" };
  return { status: 302, headers, body: Buffer.from(`<a href="${PROFILES}/">Found</a>.\n\n`) };
}

function createFlowControlPages({ flowController, clock }: OperatorPageDeps): readonly OperatorPage[] {
  if (flowController === undefined) return [];
  return createDebugDumps(flowController, clock).map(({ path, respond }) =>
    page(path, async ({ info }) => respond(info.query), ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], false),
  );
}

function createZPages(config: ApiServerConfig, { clock }: OperatorPageDeps): readonly OperatorPage[] {
  const { flags, features } = config.observability;
  const isOn = (gate: string): boolean => features.some(({ name, enabled }) => enabled && name === gate);
  const startedMs = clock.now();
  const status = () => ({
    startedMs,
    nowMs: clock.now(),
    runtimeVersion: `node${process.version}`,
    binaryVersion: config.gitVersion.replace(/^v/, ""),
    emulationVersion: config.apis.emulatedVersion,
  });
  return [
    ...(isOn("ComponentFlagz")
      ? [page("/flagz", async ({ request }) => flagz(`${COMPONENT} flagz`, flags, request))]
      : []),
    ...(isOn("ComponentStatusz")
      ? [page("/statusz", async ({ request }) => statusz(COMPONENT, status(), request))]
      : []),
  ];
}

function page(path: string, respond: Route, methods: readonly string[] = ["GET"], listed = true): OperatorPage {
  return { path, methods, respond, listed };
}
