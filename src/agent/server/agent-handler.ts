/**
 * The agent's HTTP endpoints. As in kubelet, some are services, whose routes have methods, and others are plain
 * handlers of one path and any method; a path that neither has is answered before authentication.
 */
import { StatusError } from "../../api/status.ts";
import type { Authenticator } from "../../auth/user.ts";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { errorResponse, jsonResponse, textResponse } from "../../http/respond.ts";
import { SHARED_PATH } from "../../http/tunnel/shared-connection.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { currentSpan } from "../../tracing/span.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { LogChanges } from "../logs/log-changes.ts";
import { RemovedLogs } from "../logs/removed-logs.ts";
import type { PodManager } from "../pods/pod-manager.ts";
import type { Figures } from "../stats/figures.ts";
import type { AgentAuthorization } from "./authorization.ts";
import { serveCheckpoint } from "./checkpoint.ts";
import { serveContainerLogs } from "./container-logs.ts";
import { serveAttach, serveExec, servePortForward, serveRun } from "./container-streams.ts";
import { Endpoints, type Route } from "./endpoints.ts";
import { accepts, goErrorResponse, methodNotAllowed, notAcceptable, pageNotFound } from "./go-responses.ts";
import { createCheckResponse, createHealthChecks, createHealthResponse, type HealthCheck } from "./health.ts";
import { addDebugPages, type DebugPagesOptions } from "./pages/debug-pages.ts";
import { addFigurePages } from "./pages/figure-pages.ts";
import { runProgram, serveNodeLogQuery } from "./pages/node-log-query.ts";
import { serveNodeLogs } from "./pages/node-logs.ts";
import { servePods, serveRunningPods } from "./pages/pod-pages.ts";
import { addStatusPages, type StatusPagesOptions } from "./pages/status-pages.ts";
import { type AcceptConnection, serveSharedConnections } from "./shared-connections.ts";
import { traceRequests } from "./trace-requests.ts";

type RouteParams = Readonly<Record<string, string>>;

export interface AgentHandlerOptions {
  readonly pods: PodManager;
  readonly clock: Clock;
  /** Undefined: no authentication, as on the read-only port. */
  readonly authenticate: Authenticator | undefined;
  /** Undefined: authenticated users may do everything. */
  readonly authorize?: AgentAuthorization | undefined;
  /** Empty when the agent is healthy. */
  readonly problems: () => readonly string[];
  readonly configz: unknown;
  /** Serve container logs, streams into containers, the pods of the runtime and the configuration. */
  readonly debugging: boolean;
  /** Undefined: logs are not rotated. */
  readonly removedLogs?: RemovedLogs | undefined;
  /** Whether clients may select one stream of a container's log. */
  readonly splitLogs?: boolean | undefined;
  /** A stream without data in either direction ends after this; 0 or absent: never. */
  readonly streamIdleMs?: number | undefined;
  /** Serves a connection that another one carries; undefined: none carries others. */
  readonly acceptConnection?: AcceptConnection | undefined;
  /** Profiles and the verbosity of the log. */
  readonly debugPages?: DebugPagesOptions | undefined;
  /** The directory of the node's logs: `/var/log`; undefined: they are not served. */
  readonly nodeLogs?: string | undefined;
  /** With `nodeLogs`: whether clients may query the logs of services. */
  readonly nodeLogQuery?: boolean;
  /** Whether clients may have the runtime write the state of a container to a file; true when absent. */
  readonly checkpoints?: boolean | undefined;
  /** Serves `/localVolumes`, with `authenticate` only: it creates and removes directories. */
  readonly localVolumes?: ((request: HttpRequest, params: RouteParams) => Promise<HttpResponse>) | undefined;
  /** `/flagz` and `/statusz`. */
  readonly status?: StatusPagesOptions | undefined;
  /** Undefined: requests are not traced. */
  readonly tracer?: Tracer | undefined;
  /** Metrics and statistics; undefined: they are not served. */
  readonly figures?: Figures | undefined;
}

/** Paths that kubelet answers with 405 when the debugging handlers are off. */
const DEBUGGING_ROOTS = [
  "/run",
  "/exec",
  "/attach",
  "/portForward",
  "/containerLogs",
  "/runningpods",
  "/debug/pprof",
  "/logs",
];

export function createAgentHandler(options: AgentHandlerOptions): Handler {
  const endpoints = new Endpoints();
  addHealthPaths(endpoints, createHealthChecks(options.problems, options.figures?.observeHealth));
  endpoints.service("/pods", "", JSON_TYPE, async () => servePods(options.pods));
  if (options.figures !== undefined) addFigurePages(endpoints, options.figures);
  if (options.localVolumes !== undefined && options.authenticate !== undefined) {
    const patterns = ["ensure", "remove"].map((action) => `/{volume}/${action}`);
    endpoints.services("/localVolumes", { patterns, methods: ["POST"], mediaType: JSON_TYPE }, options.localVolumes);
  }
  if (options.debugging) {
    const logChanges = new LogChanges(options.clock);
    endpoints.service("/runningpods", "", JSON_TYPE, ({ signal }) => serveRunningPods(options.pods.runtime, signal));
    endpoints.redirect("/runningpods");
    const { pods, clock, splitLogs = false } = options;
    const removedLogs = options.removedLogs ?? new RemovedLogs(silentLogger);
    endpoints.service("/containerLogs", "/{namespace}/{pod}/{container}", "", (request, params) =>
      serveContainerLogs({ pods, clock, logChanges, removedLogs, splitLogs }, request, params),
    );
    addStreams(endpoints, options);
    addNodePages(endpoints, options);
    endpoints.path("/configz", async () =>
      jsonResponse(200, { kubeletconfig: options.configz }, { "x-content-type-options": "nosniff" }),
    );
  } else {
    for (const root of DEBUGGING_ROOTS) {
      endpoints.redirect(root);
      endpoints.prefix(root, async () => goErrorResponse(405, "Debug endpoints are disabled."));
    }
  }
  const handler: Handler = async (request) => {
    try {
      const redirect = endpoints.findRedirect(request);
      if (redirect !== undefined) return redirect;
      const route = endpoints.find(request.path);
      if (route === undefined) return pageNotFound();
      const refusal = await checkAccess(options, request);
      // Other clients must not make the agent record their requests.
      currentSpan()?.trace.decide(refusal === undefined && options.authenticate !== undefined);
      return refusal ?? (await serveRoute(route, request));
    } catch (error) {
      return errorResponse(error);
    }
  };
  const hasRoute = (path: string): boolean => endpoints.find(path) !== undefined;
  const serverType = options.authenticate === undefined ? "readonly" : "readwrite";
  const traced = options.tracer === undefined ? handler : traceRequests(handler, options.tracer);
  return options.figures?.requests.wrap(traced, serverType, hasRoute) ?? traced;
}

/** Errors with a status are meant for the client; those of the reviews of its access are not. */
async function serveRoute(route: Route, request: HttpRequest): Promise<HttpResponse> {
  try {
    return await route(request, {});
  } catch (error) {
    if (error instanceof StatusError) return jsonResponse(error.status.code, error.status);
    throw error;
  }
}

function addNodePages(
  endpoints: Endpoints,
  { nodeLogs, nodeLogQuery, checkpoints = true, debugPages, status, pods, clock }: AgentHandlerOptions,
): void {
  endpoints.redirect("/logs");
  endpoints.prefix("/logs", async (request) => {
    if (nodeLogs === undefined) return goErrorResponse(405, "logs endpoint is disabled.");
    if (request.method !== "GET") return methodNotAllowed(["GET"]);
    if (!accepts(request.headers.accept, "")) return notAcceptable("");
    if (nodeLogQuery !== true) return await serveNodeLogs(nodeLogs, request);
    return await serveNodeLogQuery({ root: nodeLogs, run: runProgram }, request);
  });
  if (checkpoints) {
    const patterns = ["/{namespace}/{pod}/{container}"];
    endpoints.redirect("/checkpoint");
    endpoints.services("/checkpoint", { patterns, methods: ["POST"], mediaType: JSON_TYPE }, (request, params) =>
      serveCheckpoint({ pods, clock }, request, params),
    );
  }
  if (debugPages !== undefined) addDebugPages(endpoints, debugPages, clock);
  if (status !== undefined) addStatusPages(endpoints, status, clock);
}

const STREAM_METHODS = ["GET", "POST"];
const JSON_TYPE = "application/json";

function addStreams(endpoints: Endpoints, options: AgentHandlerOptions): void {
  const { acceptConnection } = options;
  if (acceptConnection !== undefined) {
    endpoints.path(SHARED_PATH, async (request) => serveSharedConnections(acceptConnection, request));
  }
  const container = ["/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"];
  const pod = ["/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"];
  const add = (root: string, patterns: readonly string[], methods: readonly string[], serve: typeof serveExec): void =>
    endpoints.services(root, { patterns, methods }, (request, params) => serve(options, request, params));
  add("/exec", container, STREAM_METHODS, serveExec);
  add("/attach", container, STREAM_METHODS, serveAttach);
  add("/portForward", pod, STREAM_METHODS, servePortForward);
  add("/run", container, ["POST"], serveRun);
}

/** The handler of the health port: `/healthz` with the check `ping` only, as kubelet, without authentication. */
export function createHealthHandler(): Handler {
  const endpoints = new Endpoints();
  addHealthPaths(
    endpoints,
    createHealthChecks(() => []).filter(({ name }) => name === "ping"),
  );
  return async (request) =>
    endpoints.findRedirect(request) ?? (await endpoints.find(request.path)?.(request, {})) ?? pageNotFound();
}

function addHealthPaths(endpoints: Endpoints, checks: readonly HealthCheck[]): void {
  endpoints.path("/healthz", async ({ query }) => createHealthResponse(checks, query));
  for (const check of checks) endpoints.path(`/healthz/${check.name}`, async () => createCheckResponse(check));
}

/** Authenticates and authorizes; undefined when the request is allowed. */
async function checkAccess(
  { authenticate, authorize }: AgentHandlerOptions,
  request: HttpRequest,
): Promise<HttpResponse | undefined> {
  if (authenticate === undefined) return undefined;
  try {
    const user = await authenticate({
      certificates: request.peer.certificates,
      authorization: request.headers.authorization,
      header: (name) => request.headers[name],
      path: request.path,
    });
    return user === undefined ? textResponse(401, "Unauthorized") : await authorize?.(user, request);
  } catch (error) {
    if (error instanceof StatusError && error.status.code === 401) return textResponse(401, "Unauthorized");
    throw error;
  }
}
