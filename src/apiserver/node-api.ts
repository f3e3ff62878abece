/**
 * The API of a standalone node: the objects of one node, in memory. The agent writes them through one handler; clients
 * read them through another, by the paths and in the formats of an API server.
 */
import { AdmissionChain } from "../admission/chain/chain.ts";
import { leaseKind } from "../api/coordination/lease/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import { eventKind } from "../api/core/event/kind.ts";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import { nodeKind } from "../api/core/node/kind.ts";
import type { Node } from "../api/core/node/schema.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { secretKind } from "../api/core/secret/kind.ts";
import { eventsV1EventKind } from "../api/events/event/kind.ts";
import type { GroupAliases } from "../api/group-aliases.ts";
import type { ApiObject, Kind, Verb } from "../api/kind.ts";
import { Scheme } from "../api/scheme.ts";
import { StatusError, unauthorized } from "../api/status.ts";
import { NODES, type UserInfo } from "../auth/user.ts";
import { pageNotFound } from "../http/health.ts";
import type { Handler, HttpResponse } from "../http/message.ts";
import { makeRequest } from "../http/request.ts";
import { bytesResponse, compressResponses, textResponse } from "../http/respond.ts";
import { Router } from "../http/router.ts";
import { deleteNamespace } from "../registry/delete-namespace.ts";
import { EventBudget } from "../registry/events/event-budget.ts";
import { Registries } from "../registry/registries.ts";
import type { Registry } from "../registry/registry.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import { GIT_VERSION } from "../std/version.ts";
import { versionInfo } from "../std/version-info.ts";
import type { Store } from "../storage/store.ts";
import { Discovery } from "./discovery/discovery.ts";
import { withErrorResponses } from "./filters/error-responses.ts";
import { withRequestInfo } from "./filters/request-info.ts";
import { addResourceRoutes, type Route } from "./handlers/routes.ts";
import type { ResourceSettings } from "./handlers/target.ts";
import { OpenApi } from "./openapi/openapi.ts";
import type { AgentConnections } from "./proxy/agent-connections.ts";
import { createPodLogHandler } from "./proxy/pod-log.ts";
import { applyFilters, type RequestFilter, type RequestHandler, withUser } from "./request/request-context.ts";
import { Negotiator } from "./responses/representation.ts";
import { methodNotAllowed, noSuchResource } from "./responses/status-response.ts";

export interface NodeApiOptions {
  /** Stores the objects, as the store of an API server does; the caller closes it. */
  readonly store: Store;
  /** `/registry` */
  readonly prefix: string;
  readonly nodeName: string;
  /** Authenticates the `Authorization` header; undefined for clients that may not read. */
  readonly authenticate: (authorization: string | undefined) => UserInfo | undefined;
  /** Serves `/containerLogs/{namespace}/{pod}/{container}` as agents do. */
  readonly containerLogs: Handler;
  /** The message of the 405 for clients' writes. */
  readonly readOnlyMessage: string;
  /** The host and port that clients connect to: `127.0.0.1:10350`. */
  readonly address: () => string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

export interface NodeApi extends AsyncDisposable {
  /** For the agent, which may write. */
  readonly agentHandler: Handler;
  /** For clients, which may only read. */
  readonly clientHandler: Handler;
}

const GROUP_ALIASES: GroupAliases = { served: true, listed: false };
const EVENT_TTL_SECONDS = 3600;
const MIN_WATCH_MS = 1_800_000;
const READ_VERBS: ReadonlySet<Verb> = new Set(["get", "list", "watch"]);
const READ_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
const HEALTH_PATHS = ["/healthz", "/livez", "/readyz"];

/** The kinds of objects on a node, with the subresources `status` and `log` only. */
const kinds: readonly Kind[] = [
  podKind,
  nodeKind,
  namespaceKind,
  configMapKind,
  secretKind,
  eventKind,
  eventsV1EventKind,
  leaseKind,
].map((kind) => ({
  ...(kind as Kind),
  subresources: kind.subresources.filter(({ name }) => name === "log" || name === "status") as Kind["subresources"],
}));

export function createNodeApi(options: NodeApiOptions): NodeApi {
  const { store, prefix, clock, random, log, readOnlyMessage } = options;
  const stop = new AbortController();
  const scheme = schemeOf(kinds);
  const registries = new Registries(scheme, {
    store,
    prefix,
    clock,
    random,
    log,
    eventTtlSeconds: EVENT_TTL_SECONDS,
  });
  const settings: ResourceSettings = {
    scheme,
    cbor: false,
    negotiator: new Negotiator(false),
    clock,
    random,
    minWatchMs: MIN_WATCH_MS,
    watchList: true,
    stopping: stop.signal,
    admission: new AdmissionChain([]),
    authorizeCreate: async () => {},
    authorizeUnsafeDelete: async () => {},
    escalationCheckFor: () => undefined,
  };
  const registryOf = <T extends ApiObject>({ kind, group }: Kind<T>): Registry<T> =>
    registries.of(kinds.find((each) => each.kind === kind && each.group === group) as Kind<T>);
  const agent = {
    get: (_node: Node, target: string, signal: AbortSignal) => fetchLogs(options.containerLogs, target, signal),
  };
  const podLog = { pods: registryOf(podKind), nodes: registryOf(nodeKind), agents: agent, splitLogs: false };
  const router = new Router<Route>();
  addResourceRoutes(router, scheme, registries, settings, {
    aliases: GROUP_ALIASES,
    extra: {
      subresources: { "get pods/log": createPodLogHandler(podLog) },
      connect: {},
      notStored: {},
      deletions: {
        namespaces: (_target, scope, name, options) => deleteNamespace(registryOf(namespaceKind), scope, name, options),
      },
    },
  });
  const respond = createRequestHandler(router, addNonResourceRoutes(router, options));
  const { objects } = registryOf(eventKind);
  const events = new EventBudget({ feed: registries.feedOf(eventKind), objects, clock, log });
  const agentUser: UserInfo = { name: `system:node:${options.nodeName}`, uid: "", groups: [NODES], extra: {} };
  return {
    agentHandler: withRequestInfo(applyFilters([withErrorResponses(log), withFixedUser(agentUser)], respond), random),
    clientHandler: compressResponses()(
      withRequestInfo(
        applyFilters(
          [withErrorResponses(log), withReader(options.authenticate), withReadOnly(readOnlyMessage)],
          respond,
        ),
        random,
      ),
    ),
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await events[Symbol.asyncDispose]();
      await registries[Symbol.asyncDispose]();
    },
  };
}

function schemeOf(all: readonly Kind[]): Scheme {
  const scheme = new Scheme();
  for (const kind of all) scheme.register(kind);
  return scheme;
}

function withFixedUser(user: UserInfo): RequestFilter {
  return (next) => (context) => next(withUser(context, user));
}

function withReader(reader: NodeApiOptions["authenticate"]): RequestFilter {
  return (next) => async (context) => {
    const user = reader(context.request.headers.authorization);
    if (user === undefined) throw unauthorized();
    return await next(withUser(context, user));
  };
}

function withReadOnly(readOnlyMessage: string): RequestFilter {
  return (next) => async (context) => {
    if (READ_METHODS.has(context.request.method)) return await next(context);
    throw new StatusError(405, "MethodNotAllowed", readOnlyMessage, { details: {} });
  };
}

function createRequestHandler(router: Router<Route>, discovery: Discovery): RequestHandler {
  return async (context) => {
    const { request, info } = context;
    const method = request.method === "HEAD" && !info.isResourceRequest ? "GET" : request.method;
    const match = router.match(method, request.path);
    if (match !== undefined && "value" in match) return await match.value(context, match.params);
    if (match !== undefined) throw methodNotAllowed();
    const page = request.path.replace(/\/$/, "");
    if (discovery.has(page)) return discovery.respond(page, context);
    if (/^\/apis?(?:\/|$)/.test(request.path)) throw noSuchResource();
    return pageNotFound();
  };
}

/** Adds OpenAPI, version and health, and returns discovery with the verbs that clients may use. */
function addNonResourceRoutes(router: Router<Route>, { clock, address }: NodeApiOptions): Discovery {
  const clientScheme = schemeOf(
    kinds.map((kind) => ({
      ...kind,
      verbs: kind.verbs.filter((verb) => READ_VERBS.has(verb)),
      subresources: kind.subresources.map((each) => ({
        ...each,
        verbs: each.verbs.filter((verb) => READ_VERBS.has(verb)),
      })),
    })),
  );
  const openApi = new OpenApi(clientScheme, GROUP_ALIASES, GIT_VERSION, clock);
  const get = (path: string, route: Route): void => router.add("GET", path, route);
  get("/openapi/v2", ({ request: { headers } }) => openApi.v2(headers.accept, headers["if-none-match"]));
  get("/openapi/v3", ({ request: { headers } }) => openApi.root(headers["if-none-match"]));
  get("/openapi/v3/{path*}", ({ request: { headers }, info }, { path = "" }) =>
    openApi.v3(path, info.query.get("hash"), headers),
  );
  const version = Buffer.from(JSON.stringify(versionInfo(GIT_VERSION), undefined, 2));
  get("/version", async () => bytesResponse(200, "application/json", version));
  for (const path of HEALTH_PATHS) get(path, async () => textResponse(200, "ok"));
  return new Discovery(clientScheme, GROUP_ALIASES, address);
}

async function fetchLogs(logs: Handler, target: string, signal: AbortSignal): ReturnType<AgentConnections["get"]> {
  const [path = "", query = ""] = target.split("?");
  const { status, headers, body }: HttpResponse = await logs(makeRequest({ path, query, signal }));
  return { status, contentType: String(headers["content-type"] ?? "text/plain"), body: chunksOf(body) };
}

async function* chunksOf(body: HttpResponse["body"]): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) yield body;
  else yield* body;
}
