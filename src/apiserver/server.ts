/** The server put together. The stages a request passes stand in `handlerOf`, in their order. */
import { isIPv6 } from "node:net";
import type { UserInfo } from "../auth/user.ts";
import type { Filter, Handler } from "../http/message.ts";
import { compressResponses } from "../http/respond.ts";
import { systemRandom } from "../std/crypto/random.ts";
import { readHostAddress } from "../std/net/host-addresses.ts";
import { type AccessControl, createAccessControl } from "./assembly/access-control.ts";
import { createApiHandler } from "./assembly/api-handler.ts";
import { runPostStartHooks } from "./assembly/post-start.ts";
import { type ApiServerDeps, type ServerBase, createServerBase } from "./assembly/server-base.ts";
import type { ApiServerConfig } from "./config/config.ts";
import { DebugEndpoints } from "./debug/debug-endpoints.ts";
import { withAuthentication } from "./filters/authentication.ts";
import { withAuthorization } from "./filters/authorization.ts";
import { withCors } from "./filters/cors.ts";
import { withErrorResponses } from "./filters/error-responses.ts";
import { withHsts } from "./filters/hsts.ts";
import { withImpersonation } from "./filters/impersonation.ts";
import { withMaxInFlightLimit } from "./filters/max-in-flight.ts";
import { withRequestDeadline } from "./filters/request-deadline.ts";
import { withRequestInfo } from "./filters/request-info.ts";
import type { Readiness } from "./health/readiness.ts";
import { withClientMetrics } from "./metrics/client-metrics.ts";
import { withRequestMetrics } from "./metrics/request-metrics.ts";
import type { ServerMetrics } from "./metrics/server-metrics.ts";
import { applyFilters, type RequestHandler } from "./request/request-context.ts";
import { type SecureServingParts, type SecureServing, isUnspecifiedAddress, startSecureServing } from "./serving/secure-serving.ts";

/** The server without its port. */
export interface ApiServer extends AsyncDisposable {
  /** The whole chain; in-process components call it with `authorization: Bearer <token>`. */
  readonly handler: Handler;
  /** A random token, never written anywhere, for a component of this process. */
  loopbackToken(user: UserInfo): string;
}

export interface RunningApiServer extends ApiServer {
  readonly address: { readonly host: string; readonly port: number };
  /** Whether the server can still do its work. */
  healthy(): Promise<boolean>;
  /** Stops as SIGTERM would: not ready, delay, drain, store closed. */
  close(): Promise<void>;
}

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export async function startApiServer(config: ApiServerConfig, deps: ApiServerDeps): Promise<RunningApiServer> {
  const { clock, log, random = systemRandom } = deps;
  const address = { host: config.bindAddress, port: config.securePort };
  const hostIp = isUnspecifiedAddress(config.bindAddress) ? await readHostAddress() : undefined;
  const externalHostPort = (): string =>
    externalAddress(config.serving.advertisedHost ?? hostIp ?? address.host, address.port);
  let secureServing: SecureServing | undefined;
  const open = async (behind: SecureServingParts): Promise<void> => {
    secureServing = await startSecureServing(config, { clock, log, random }, behind);
    Object.assign(address, secureServing.address);
  };
  const { server, readiness } = await createApiServer(config, deps, externalHostPort, open).catch(async (error: unknown) => {
    await secureServing?.[Symbol.asyncDispose]();
    throw error;
  });
  readiness.markStarted();
  log.info("Serving securely", { address: `${address.host}:${address.port}` });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await secureServing?.close();
      await server[Symbol.asyncDispose]();
    })();
    return closing;
  };
  return { ...server, address, healthy: () => readiness.isAlive(), close, [Symbol.asyncDispose]: close };
}

/** What clients are told. An external host name may come with a port of its own. */
function externalAddress(host: string, port: number): string {
  if (isIPv6(host)) return `[${host}]:${port}`;
  return /:\d+$/.test(host) ? host : `${host}:${port}`;
}

export interface ApiServerParts {
  readonly server: ApiServer;
  readonly readiness: Readiness;
  readonly metrics: ServerMetrics;
  /** Ends what would otherwise go on for as long as its client likes. */
  endWatches(): void;
}

/**
 * Everything but the port. `address` is what clients are told. `open` is called when requests can be answered, before
 * the store has been read.
 */
export async function createApiServer(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  address: () => string,
  open: (behind: SecureServingParts) => Promise<void> = async () => {},
): Promise<ApiServerParts> {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new Error("the server is stopping"));
  await using resources = new AsyncDisposableStack();
  const base = await createServerBase(config, deps, { stopping: stopping.signal, resources: resources });
  const { readiness, metrics } = base;
  const accessControl = await createAccessControl(base);
  const { loopbackToken, clientAuthorities: authorities } = accessControl.authenticators;
  const debugging = { clock, log: log.child("debug"), setVerbosity: deps.setVerbosity ?? (() => {}) };
  const diagnostics = resources.use(new DebugEndpoints(config.observability, debugging));
  const endpoint = await createApiHandler(base, accessControl, { address, diagnostics });
  const handler = buildHandlerChain(base, accessControl, endpoint);
  // Before anything that may take long, which is when somebody wants to look.
  const { debugSocket } = config.observability;
  if (debugSocket !== undefined) await diagnostics.openSocket(debugSocket, debugging);
  readiness.markDone("handlers");
  await open({ handler, readiness, authorities });
  const counted = withClientMetrics(handler, metrics.registry, address);
  await runPostStartHooks(base, accessControl, { address, handler: counted, stop });
  const parts = resources.move();
  const server = { handler, loopbackToken, [Symbol.asyncDispose]: () => parts.disposeAsync() };
  return { server, readiness, metrics, endWatches: stop };
}

/** A request's way through the server, from the connection inwards. */
function buildHandlerChain(base: ServerBase, { authenticators: identities, authorizer }: AccessControl, endpoint: RequestHandler): Handler {
  const { config, clock, log, random, metrics } = base;
  const filtered = applyFilters(
    [
      withRequestMetrics(metrics.requests, clock),
      withErrorResponses(log.child("http")),
      withRequestDeadline(clock, config.limits.requestTimeoutMs, metrics.requests.onTermination),
      withAuthentication(identities.authenticate, clock, log.child("authentication")),
      withImpersonation(authorizer),
      withMaxInFlightLimit(config.limits.inFlight, metrics.requests.onTermination),
      withAuthorization(authorizer, config.authorization.selectors),
    ],
    endpoint,
  );
  const filters: readonly Filter[] = [
    compressResponses(),
    withHsts(config.serving.strictTransportSecurity),
    withCors(config.serving.corsOrigins),
  ];
  return filters.reduceRight<Handler>((next, filter) => filter(next), withRequestInfo(filtered, random));
}
