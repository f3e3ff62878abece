/**
 * An extension server over TLS, built on this project's packages: it stores objects of its own kinds and trusts the
 * identity headers of a front proxy.
 */
import { AdmissionChain } from "../../admission/chain/chain.ts";
import { schemeOf } from "../../api/builtin.ts";
import type { Kind } from "../../api/kind.ts";
import { Discovery } from "../../apiserver/discovery/discovery.ts";
import { withAuthentication } from "../../apiserver/filters/authentication.ts";
import { withErrorResponses } from "../../apiserver/filters/error-responses.ts";
import { withRequestInfo } from "../../apiserver/filters/request-info.ts";
import { addResourceRoutes, type ExtraHandlers, type Route } from "../../apiserver/handlers/routes.ts";
import { OpenApi } from "../../apiserver/openapi/openapi.ts";
import { applyFilters, type RequestContext, type RequestHandler } from "../../apiserver/request/request-context.ts";
import { Negotiator } from "../../apiserver/responses/representation.ts";
import { InvalidCredentialsError } from "../../auth/authn/invalid-credentials-error.ts";
import { requestHeaderAuthenticator } from "../../auth/authn/request-header.ts";
import type { UserInfo } from "../../auth/user.ts";
import { pageNotFound } from "../../http/health.ts";
import type { Handler, HttpResponse } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { Router } from "../../http/router.ts";
import { listen } from "../../http/server/server.ts";
import { Registries } from "../../registry/registries.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { createMemoryStore } from "../../storage/memory.ts";

export interface ExtensionServerOptions {
  readonly kinds: readonly Kind[];
  readonly certificate: { readonly cert: string; readonly key: string };
  /** PEM of the CA of front proxies. */
  readonly proxyCa: string;
  /** Responds before anything else; undefined: the server responds itself. */
  readonly intercept?: ((context: RequestContext) => Promise<HttpResponse | undefined>) | undefined;
  readonly notStored?: ExtraHandlers["notStored"] | undefined;
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

export interface ReceivedRequest {
  readonly line: string;
  readonly user: UserInfo;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ExtensionServer extends AsyncDisposable {
  readonly port: number;
  /** In the order of their arrival; at most the last thousand. */
  readonly received: ReceivedRequest[];
}

const RECEIVED_MAX = 1000;
const NAMES = {
  usernames: ["X-Remote-User"],
  uids: ["X-Remote-Uid"],
  groups: ["X-Remote-Group"],
  extraPrefixes: ["X-Remote-Extra-"],
};
const ALIASES = { served: true, listed: false };

export async function startExtensionServer(options: ExtensionServerOptions): Promise<ExtensionServer> {
  await using resources = new AsyncDisposableStack();
  const stop = new AbortController();
  const [clock, random, log] = [systemClock, systemRandom, silentLogger];
  const store = resources.use(createMemoryStore({ clock }));
  const scheme = schemeOf(options.kinds);
  const registries = resources.use(new Registries(scheme, { store, prefix: "/registry", clock, random, log }));
  const received: ReceivedRequest[] = [];
  const handler = createHandler(options, registries, stop.signal, received);
  const { cert, key } = options.certificate;
  const tls = { cert, key, ca: options.proxyCa, requestCert: true };
  const { host = "127.0.0.1", port = 0 } = options;
  const listener = resources.use(await listen({ handler, log, clock, tls, upgrades: true, host, port }));
  resources.defer(() => stop.abort(new Error("the server is stopping")));
  const owned = resources.move();
  return { port: listener.port, received, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function createHandler(
  { proxyCa, intercept, notStored = {} }: ExtensionServerOptions,
  registries: Registries,
  stopping: AbortSignal,
  received: ReceivedRequest[],
): Handler {
  const { scheme } = registries;
  const router = new Router<Route>();
  const settings = {
    scheme,
    cbor: false,
    negotiator: new Negotiator(false),
    clock: systemClock,
    random: systemRandom,
    minWatchMs: 1_800_000,
    watchList: false,
    stopping,
    admission: new AdmissionChain([]),
    authorizeCreate: async () => {},
    authorizeUnsafeDelete: async () => {},
    escalationCheckFor: () => undefined,
  };
  const extra = { subresources: {}, connect: {}, notStored, deletions: {} };
  addResourceRoutes(router, scheme, registries, settings, { aliases: ALIASES, extra });
  const discovery = new Discovery(scheme, ALIASES, () => "127.0.0.1:443");
  const openApi = new OpenApi(scheme, ALIASES, "v1.33.0", systemClock);
  const respond: RequestHandler = async (context) => {
    const { request, user, info } = context;
    const { path, headers, method } = request;
    received.push({ line: `${method} ${path}`, user: user!, headers });
    if (received.length > RECEIVED_MAX) received.shift();
    const intercepted = await intercept?.(context);
    if (intercepted !== undefined) return intercepted;
    const match = router.match(method, path);
    if (match !== undefined && "value" in match) return await match.value(context, match.params);
    if (discovery.has(path)) return discovery.respond(path, context);
    if (path === "/openapi/v2") return await openApi.v2(headers.accept, headers["if-none-match"]);
    if (path === "/openapi/v3") return await openApi.root(headers["if-none-match"]);
    if (path.startsWith("/openapi/v3/")) return await openApi.v3(path.slice(12), info.query.get("hash"), headers);
    return ["/livez", "/readyz", "/healthz"].includes(path) ? textResponse(200, "ok") : pageNotFound();
  };
  const proxies = requestHeaderAuthenticator({ caPem: proxyCa, clock: systemClock, allowedNames: [], names: NAMES });
  const authenticate: typeof proxies.authenticate = async (credentials) => {
    if (/^\/(?:livez|readyz|healthz)$/.test(credentials.path ?? "")) return ANONYMOUS;
    const user = await proxies.authenticate(credentials);
    if (user === undefined) throw new InvalidCredentialsError("there is no certificate of a front proxy");
    return user;
  };
  const filters = [withErrorResponses(silentLogger), withAuthentication(authenticate, systemClock, silentLogger)];
  return withRequestInfo(applyFilters(filters, respond), systemRandom);
}

const ANONYMOUS: UserInfo = { name: "system:anonymous", uid: "", groups: ["system:unauthenticated"], extra: {} };
