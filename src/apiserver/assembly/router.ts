/** Routes requests by path: resources, discovery, OpenAPI, health, metrics and other pages. */
import { TUNNEL_SUBRESOURCE } from "../../api/core/node/tunnel.ts";
import type { GroupAliases } from "../../api/group-aliases.ts";
import type { Scheme } from "../../api/scheme.ts";
import { pageNotFound, respondHealth } from "../../http/health.ts";
import type { HttpResponse } from "../../http/message.ts";
import { acceptsExactly } from "../../http/negotiate.ts";
import { bytesResponse } from "../../http/respond.ts";
import { Router } from "../../http/router.ts";
import type { Registries } from "../../registry/registries.ts";
import { lazy } from "../../std/async/lazy.ts";
import { versionInfo } from "../../std/version-info.ts";
import type { Aggregator } from "../aggregation/aggregator.ts";
import { CONFIGURATION_PATH, type IssuerDiscovery, JWKS_PATH } from "../authentication/issuer-discovery.ts";
import type { CustomResources } from "../custom-resources/custom-resources.ts";
import { createCustomResourceHandler } from "../custom-resources/custom-routes.ts";
import type { OperatorPage } from "../debug/operator-pages.ts";
import { Discovery } from "../discovery/discovery.ts";
import { addResourceRoutes, type ExtraHandlers, type Route } from "../handlers/routes.ts";
import type { ResourceSettings } from "../handlers/target.ts";
import type { Readiness } from "../health/readiness.ts";
import type { RequestContext, RequestHandler } from "../request/request-context.ts";
import { methodNotAllowed, noSuchResource, notAcceptable } from "../responses/status-response.ts";

export interface RouterOptions {
  readonly scheme: Scheme;
  readonly registries: Registries;
  readonly customResources: CustomResources;
  readonly settings: ResourceSettings;
  readonly readiness: Readiness;
  /** Metrics, profiles and status pages. */
  readonly operatorPages: readonly OperatorPage[];
  readonly groupAliases: GroupAliases;
  readonly gitVersion: string;
  /** `1.33` */
  readonly emulatedVersion: string;
  readonly address: () => string;
  readonly issuerDiscovery: IssuerDiscovery | undefined;
  readonly extraHandlers: ExtraHandlers;
  readonly aggregator: Aggregator;
  /** Opens the tunnel of a node. */
  readonly openTunnel: Route;
}

export function createRouter(options: RouterOptions): RequestHandler {
  const {
    scheme,
    registries,
    customResources: custom,
    settings,
    groupAliases: aliases,
    extraHandlers: extra,
  } = options;
  const router = new Router<Route>();
  addResourceRoutes(router, scheme, registries, settings, { aliases, extra });
  const { aggregator } = options;
  const { features } = registries;
  const discovery = new Discovery(scheme, aliases, options.address, aggregator, {
    betaAggregated: !features.has("AggregatedDiscoveryRemoveBetaType"),
    storageHashes: features.has("StorageVersionHash"),
  });
  router.add("GET", `/api/v1/nodes/{name}/${TUNNEL_SUBRESOURCE}`, options.openTunnel);
  addNonResourceRoutes(router, options, discovery);
  const respondCustom = createCustomResourceHandler({
    customResources: custom,
    settings,
    groupAliases: aliases,
    extraHandlers: extra,
  });
  const groups = new Set(discovery.paths().map((path) => path.split("/").slice(0, 3).join("/")));
  return (context) => {
    const { request } = context;
    const forwarded = aggregator.respond(context);
    if (forwarded !== undefined) return forwarded;
    const allowsHead = !context.info.isResourceRequest && !GET_ONLY_PATH.test(context.info.path);
    const method = request.method === "HEAD" && allowsHead ? "GET" : knownMethod(request.method);
    const match = router.match(method, request.path);
    if (match === undefined) return respondUnrouted(context, method);
    return "value" in match ? match.value(context, match.params) : Promise.reject(methodNotAllowed());
  };

  async function respondUnrouted(context: RequestContext, method: string): Promise<HttpResponse> {
    const { path } = context.info;
    const page = path.replace(/\/$/, "");
    if ((method === "GET" || GROUP_DISCOVERY_PATH.test(page)) && discovery.has(page))
      return discovery.respond(page, context);
    const customResponse = await respondCustom(context);
    if (customResponse !== undefined) return customResponse;
    // Below /api and /apis a missing path is a Status, elsewhere plain text.
    const group = path.split("/").slice(0, 3).join("/");
    if (path.startsWith("/api/") || groups.has(group)) throw noSuchResource();
    return pageNotFound();
  }
}

/** Paths that allow GET and not HEAD, as resources do. The others respond to every method, as in Kubernetes. */
const GET_ONLY_PATH = /^\/(?:api(?:\/[^/]+)?|apis\/[^/]+\/[^/]+|version|\.well-known\/.*|openid\/.*)\/?$/;
const GROUP_DISCOVERY_PATH = /^\/apis(?:\/[^/]+)?$/;
const ANY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/** Paths that allow TRACE allow every other method. */
function knownMethod(method: string): string {
  return ANY_METHOD.includes(method) || method === "HEAD" ? method : "TRACE";
}

function addNonResourceRoutes(router: Router<Route>, options: RouterOptions, discovery: Discovery): void {
  const { readiness } = options;
  const addGet = (path: string, route: Route): void => router.add("GET", path, route);
  const addAny = (path: string, route: Route): void => {
    for (const method of ANY_METHOD) router.add(method, path, route);
  };
  for (const path of discovery.paths()) {
    // Group discovery responds to every method, as in Kubernetes.
    const methods = GROUP_DISCOVERY_PATH.test(path) ? ANY_METHOD : ["GET"];
    for (const method of methods) router.add(method, path, async (context) => discovery.respond(path, context));
  }
  const openApi = lazy(async () => {
    const { OpenApi } = await import("../openapi/openapi.ts");
    const { aggregator } = options;
    const extensions = { v2: () => aggregator.openApiV2(), v3: () => aggregator.openApiV3Paths() };
    const hasEnums = options.registries.features.has("OpenAPIEnums");
    const { scheme, groupAliases, gitVersion, settings } = options;
    return new OpenApi(scheme, groupAliases, gitVersion, settings.clock, extensions, hasEnums);
  });
  const respondV2: Route = async ({ request: { headers } }) =>
    await (await openApi()).v2(headers.accept, headers["if-none-match"]);
  addAny("/openapi/v2", exactly("/openapi/v2", respondV2));
  addAny("/openapi/v3", async ({ request: { path, headers } }) => {
    const documents = await openApi();
    return path.endsWith("/") ? await documents.v3("", null, headers) : await documents.root(headers["if-none-match"]);
  });
  addAny("/openapi/v3/{path*}", async (context, { path = "" }) => {
    const { request, info } = context;
    const forwarded = options.aggregator.respondOpenApiV3(path, context);
    if (forwarded !== undefined) return await forwarded;
    return await (await openApi()).v3(path, info.query.get("hash"), request.headers);
  });
  const version = versionInfo(options.gitVersion, options.emulatedVersion);
  addGet("/version", async ({ request }) => {
    if (!acceptsExactly(request.headers.accept, [{ mediaType: "application/json" }]))
      throw notAcceptable(["application/json"]);
    return prettyJson(version);
  });
  for (const endpoint of readiness.endpoints()) {
    const route: Route = async ({ request, info }, { check = "" }) => {
      if (check === "" && request.path.endsWith("/")) return pageNotFound();
      return await respondHealth(endpoint, check, info.query, readiness.log);
    };
    addAny(`/${endpoint.name}/{check*}`, route);
  }
  for (const { path, methods, respond } of options.operatorPages) {
    // Profiles have redirects of their own.
    const route = path.startsWith("/debug/") ? respond : exactly(path, respond);
    for (const method of methods) router.add(method, path, route);
  }
  if (options.issuerDiscovery !== undefined) {
    const { configuration, jwks } = options.issuerDiscovery;
    addGet(CONFIGURATION_PATH, configuration);
    addGet(JWKS_PATH, async ({ request }) => {
      const mediaType = "application/jwk-set+json";
      if (!acceptsExactly(request.headers.accept, [{ mediaType }])) throw notAcceptable([mediaType]);
      return await jwks();
    });
  }
  const index: Route = async (context) => rootPaths(context, options, discovery);
  addAny("/", index);
  addAny("/index.html", exactly("/index.html", index));
}

/** Refuses a trailing slash, which the paths of resources and discovery allow. */
function exactly(path: string, route: Route): Route {
  return async (context, params) => (context.info.path === path ? await route(context, params) : pageNotFound());
}

/** Indented JSON, as Kubernetes responds to every client here. */
function prettyJson(value: unknown): HttpResponse {
  return bytesResponse(200, "application/json", Buffer.from(JSON.stringify(value, undefined, 2)));
}

/** The response of `/`: all paths. */
function rootPaths(
  _context: RequestContext,
  { readiness, operatorPages }: RouterOptions,
  discovery: Discovery,
): HttpResponse {
  const health = readiness
    .endpoints()
    .flatMap(({ name, checks }) => [`/${name}`, ...checks.map((check) => `/${name}/${check.name}`)]);
  const listed = operatorPages.filter((page) => page.listed).map((page) => page.path);
  const all = [...discovery.paths(), ...health, ...listed, "/openapi/v2", "/openapi/v3", "/version"];
  return prettyJson({ paths: all.sort() });
}
