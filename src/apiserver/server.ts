/** Assembles the API server. `buildHandlerChain` lists the filters of a request in their order. */
import type { UserInfo } from "../auth/user.ts";
import { withClientMetrics } from "../http/client-metrics.ts";
import type { Filter, Handler } from "../http/message.ts";
import { compressResponses } from "../http/respond.ts";
import type { Registries } from "../registry/registries.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { readHostAddress } from "../std/net/host-addresses.ts";
import { isIpAddress } from "../std/net/ip.ts";
import { type AccessControl, createAccessControl } from "./assembly/access-control.ts";
import { createApiHandler } from "./assembly/api-handler.ts";
import { MemoryProtection } from "./assembly/memory-protection.ts";
import { runPostStartHooks } from "./assembly/post-start.ts";
import { type ApiServerDeps, createServerBase, type ServerBase } from "./assembly/server-base.ts";
import type { ApiServerConfig } from "./config/config.ts";
import { DebugEndpoints } from "./debug/debug-endpoints.ts";
import { withAudit, withFailedAuthenticationAudit } from "./filters/audit.ts";
import { withAuthentication } from "./filters/authentication.ts";
import { withAuthorization } from "./filters/authorization.ts";
import { withCors } from "./filters/cors.ts";
import { withErrorResponses } from "./filters/error-responses.ts";
import { withHsts } from "./filters/hsts.ts";
import { withImpersonation } from "./filters/impersonation.ts";
import { withMaxInFlightLimit } from "./filters/max-in-flight.ts";
import { withPriorityAndFairness } from "./filters/priority-and-fairness.ts";
import { withRequestDeadline } from "./filters/request-deadline.ts";
import { withRequestInfo } from "./filters/request-info.ts";
import { withChangeLog, withRequestLog } from "./filters/request-log.ts";
import { RequestTracing } from "./filters/tracing.ts";
import type { Readiness } from "./health/readiness.ts";
import { withRequestMetrics } from "./metrics/request-metrics.ts";
import type { ServerMetrics } from "./metrics/server-metrics.ts";
import { applyFilters, type RequestFilter, type RequestHandler } from "./request/request-context.ts";
import {
  isUnspecifiedAddress,
  type SecureServing,
  type SecureServingParts,
  startSecureServing,
} from "./serving/secure-serving.ts";

/** The server without its port. */
export interface ApiServer extends AsyncDisposable {
  /** The handler chain; in-process components call it with `authorization: Bearer <token>`. */
  readonly handler: Handler;
  /** Creates a random token, held in memory only, for a component of this process. */
  loopbackToken(user: UserInfo): string;
}

export interface RunningApiServer extends ApiServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Whether the store answers. */
  healthy(): Promise<boolean>;
  /** Drops what caches can create again. */
  releaseMemory(): void;
  /** Stops as SIGTERM would: not ready, delay, drain, store closed. */
  close(): Promise<void>;
}

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export async function startApiServer(config: ApiServerConfig, deps: ApiServerDeps): Promise<RunningApiServer> {
  if (config.workers > 1) return await startThreads(config, deps);
  return await startInThread(config, deps);
}

/** Starts the server with worker threads, which end with it. */
async function startThreads(config: ApiServerConfig, deps: ApiServerDeps): Promise<RunningApiServer> {
  const { WorkerPool } = await import("./workers/worker-pool.ts");
  const pool = new WorkerPool(config, deps);
  try {
    const setVerbosity = (level: number): void => {
      deps.setVerbosity?.(level);
      pool.setVerbosity(level);
    };
    return await startInThread(pool.config, { ...deps, setVerbosity, threads: pool }, pool);
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
}

/** The threads that serve beside this one. */
interface OtherThreads {
  /** Resolves when they can listen; rejects when the port is in use. */
  prepare(): Promise<void>;
  listen(port: number): Promise<void>;
  /** Called when this thread is ready; resolves when they are. */
  serve(): Promise<void>;
  /** Called when the requests of this thread have ended; resolves when theirs have. */
  drained(): Promise<void>;
  close(): Promise<void>;
}

async function startInThread(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  others?: OtherThreads,
): Promise<RunningApiServer> {
  const { clock, log, random = systemRandom } = deps;
  const address = { host: config.bindAddress, port: config.securePort };
  const hostIp = isUnspecifiedAddress(config.bindAddress) ? await readHostAddress() : undefined;
  const externalHostPort = (): string =>
    externalAddress(config.serving.advertisedHost ?? hostIp ?? address.host, address.port);
  let secureServing: SecureServing | undefined;
  const open = async (parts: SecureServingParts): Promise<void> => {
    await others?.prepare();
    secureServing = await startSecureServing(config, { clock, log, random }, parts);
    Object.assign(address, secureServing.address);
    await others?.listen(address.port);
  };
  const { server, readiness, memory, registries } = await createApiServer(config, deps, externalHostPort, open).catch(
    async (error: unknown) => {
      await secureServing?.[Symbol.asyncDispose]();
      throw error;
    },
  );
  if (others !== undefined) readiness.waitForThreads();
  readiness.markStarted();
  await others?.serve();
  readiness.markThreadsServing();
  log.info("Serving securely", { address: `${address.host}:${address.port}` });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      memory.beginStop();
      const othersDrained = others && (() => others.drained());
      await Promise.all([secureServing?.close(othersDrained), others?.close()]);
      await server[Symbol.asyncDispose]();
    })();
    return closing;
  };
  const releaseMemory = (): void => registries.releaseMemory();
  return { ...server, address, healthy: () => readiness.isAlive(), releaseMemory, close, [Symbol.asyncDispose]: close };
}

/** The host and port that clients connect to. --external-hostname may include a port. */
export function externalAddress(host: string, port: number): string {
  if (isIpAddress(host) && host.includes(":")) return `[${host}]:${port}`;
  return /:\d+$/.test(host) ? host : `${host}:${port}`;
}

export interface ApiServerParts {
  readonly server: ApiServer;
  readonly readiness: Readiness;
  readonly metrics: ServerMetrics;
  readonly memory: MemoryProtection;
  readonly registries: Registries;
  /** Ends watches and other long-running requests. */
  endWatches(): void;
}

/**
 * Creates the server without a listener. `address` returns the host and port that clients connect to. `open` is called
 * when the handler can serve requests, before the store is read.
 */
export async function createApiServer(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  address: () => string,
  open: (parts: SecureServingParts) => Promise<void> = async () => {},
): Promise<ApiServerParts> {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new Error("the server is stopping"));
  await using resources = new AsyncDisposableStack();
  const base = await createServerBase(config, deps, { stopping: stopping.signal, resources });
  const { readiness, metrics } = base;
  const accessControl = await createAccessControl(base);
  const { loopbackToken, clientAuthorities } = accessControl.authenticators;
  const debugDeps = { clock, log: log.child("debug"), setVerbosity: deps.setVerbosity ?? (() => {}) };
  const debugEndpoints = resources.use(new DebugEndpoints(config.observability, debugDeps));
  const apiHandler = await createApiHandler(base, accessControl, { address, debugEndpoints });
  const memory = resources.use(new MemoryProtection(clock, log.child("memory"), metrics.requests.onTermination));
  const handler = buildHandlerChain(base, accessControl, memory, apiHandler);
  // The debug socket opens before the slow part of the start, so that the start can be profiled.
  const { debugSocket } = config.observability;
  if (debugSocket !== undefined) await debugEndpoints.openSocket(debugSocket, debugDeps);
  readiness.markDone("handlers");
  const { onHandshakeFailure } = metrics.requests;
  await open({ handler, readiness, clientAuthorities, onHandshakeFailure });
  const clientHandler = withClientMetrics(handler, metrics.registry, address);
  await runPostStartHooks(base, accessControl, { address, handler: clientHandler, stop });
  const parts = resources.move();
  const server = { handler, loopbackToken, [Symbol.asyncDispose]: () => parts.disposeAsync() };
  return { server, readiness, metrics, memory, registries: base.registries, endWatches: stop };
}

/**
 * The filters of a request in their order, as in Kubernetes' DefaultBuildHandlerChain. Requests over the network first
 * pass those of `serving/secure-serving.ts`.
 */
function buildHandlerChain(
  { config, clock, log, random, metrics, auditor, tracer, flowControl, features }: ServerBase,
  { authenticators, authorizer }: AccessControl,
  memory: MemoryProtection,
  apiHandler: RequestHandler,
): Handler {
  const httpFilters: readonly Filter[] = [
    ...(features.has("APIResponseCompression") ? [compressResponses()] : []),
    withHsts(config.serving.strictTransportSecurity),
    withCors(config.serving.corsOrigins),
  ];
  const { requestTimeoutMs: timeoutMs } = config.limits;
  const { onTermination } = metrics.requests;
  const requestLog = log.child("httplog");
  const closesAnonymous = features.has("UnauthenticatedHTTP2DOSMitigation");
  const tracing = new RequestTracing({ clock, log, tracer, filterDurations: metrics.requests.filterDurations });
  const requestFilters: readonly RequestFilter[] = [
    tracing.server,
    withRequestLog(requestLog, clock),
    withRequestMetrics(metrics.requests, clock),
    withErrorResponses(log.child("http")),
    withRequestDeadline(clock, timeoutMs, onTermination),
    ...(auditor === undefined ? [] : [withFailedAuthenticationAudit(auditor, clock)]),
    tracing.filter(
      "authentication",
      withAuthentication(authenticators.authenticate, clock, log.child("authentication"), closesAnonymous),
    ),
    tracing.sampling,
    ...(auditor === undefined ? [] : [tracing.filter("audit", withAudit(auditor, clock, log.child("http")))]),
    tracing.filter("impersonation", withImpersonation(authorizer)),
    flowControl === undefined
      ? tracing.filter("maxinflight", withMaxInFlightLimit(config.limits.inFlight, onTermination))
      : tracing.filter(
          "priorityandfairness",
          withPriorityAndFairness({
            ...{ ...flowControl, clock, timeoutMs, onRejection: onTermination },
            ...{ log: requestLog, queued: metrics.requests.queued },
          }),
        ),
    tracing.filter(
      "authorization",
      withAuthorization(authorizer, clock, config.authorization.selectors, log.child("authorization")),
    ),
    memory.filter,
    withChangeLog(requestLog),
    tracing.handler,
  ];
  return applyFilters(httpFilters, withRequestInfo(applyFilters(requestFilters, apiHandler), random, clock));
}
