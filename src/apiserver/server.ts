/** The server put together. The stages a request passes stand in `assemble`, in their order. */
import { readFile } from "node:fs/promises";
import { builtinScheme } from "../api/builtin.ts";
import { namespaceKind } from "../api/core/namespace-kind.ts";
import { nodeKind } from "../api/core/node-kind.ts";
import { podKind } from "../api/core/pod-kind.ts";
import { anonymousAuthenticator } from "../auth/authn/anonymous.ts";
import { tokenAuthenticator } from "../auth/authn/token.ts";
import { parseTokenFile } from "../auth/authn/token-file.ts";
import { unionAuthenticator } from "../auth/authn/union.ts";
import { x509Authenticator } from "../auth/authn/x509.ts";
import { authorizerFor } from "../auth/authz/modes.ts";
import { createNodeGraph } from "../auth/authz/node-graph.ts";
import type { UserInfo } from "../auth/user.ts";
import type { Handler } from "../http/message.ts";
import { compression } from "../http/respond.ts";
import { type Listener, listen } from "../http/server.ts";
import type { Admit } from "../registry/create.ts";
import { namespaceLifecycle } from "../registry/namespaces.ts";
import { podAdmission } from "../registry/pod-admission.ts";
import { Registries } from "../registry/registries.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import { type RandomSource, systemRandom } from "../std/random.ts";
import { withTimeout } from "../std/with-timeout.ts";
import { openStore } from "../storage/open.ts";
import type { Store } from "../storage/store.ts";
import { AgentConnections } from "./agents.ts";
import { bootstrap } from "./bootstrap.ts";
import type { ApiServerConfig } from "./config.ts";
import { chain } from "./context.ts";
import { startEmbedded } from "./embedded.ts";
import { feedNodeGraph } from "./node-graph-feed.ts";
import { podLog } from "./pod-log.ts";
import { Readiness } from "./readiness.ts";
import { routing } from "./routing.ts";
import { servingCertificate } from "./serving-certificate.ts";
import { authentication } from "./stages/authentication.ts";
import { authorization } from "./stages/authorization.ts";
import { crossOrigin } from "./stages/cors.ts";
import { deadline } from "./stages/deadline.ts";
import { failures } from "./stages/failures.ts";
import { receive } from "./stages/receive.ts";
import { strictTransportSecurity } from "./stages/transport-security.ts";

export interface ApiServerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: RandomSource | undefined;
  /** Instead of the one that the configuration names; closed by the server all the same. */
  readonly store?: Store | undefined;
}

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

/** How long requests in flight may go on after the port has closed. */
const DRAIN_MS = 10_000;

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export async function startApiServer(config: ApiServerConfig, deps: ApiServerDeps): Promise<RunningApiServer> {
  const { clock, log } = deps;
  const { limits, serving } = config;
  const certificate = await servingCertificate(serving, config.bindAddress, clock, log);
  const address = { host: config.bindAddress, port: config.securePort };
  const parts = await assemble(
    config,
    deps,
    () => `${bracketed(serving.advertisedHost ?? address.host)}:${address.port}`,
  );
  let listener: Listener;
  try {
    listener = await listen({
      handler: parts.server.handler,
      log: log.child("http"),
      clock,
      ...(isEverywhere(config.bindAddress) ? {} : { host: config.bindAddress }),
      port: config.securePort,
      tls: {
        ...certificate,
        requestCert: true,
        ca: parts.clientCa,
        minVersion: serving.minVersion,
        ciphers: serving.ciphers,
      },
      limits: serving.streamsPerConnection > 0 ? { streamsPerConnection: serving.streamsPerConnection } : {},
      http2: !serving.disableHttp2,
      sharePort: serving.sharePort,
    });
  } catch (error) {
    await parts.server[Symbol.asyncDispose]();
    throw error;
  }
  address.host = listener.address;
  address.port = listener.port;
  parts.readiness.started();
  log.info("Serving securely", { address: `${listener.address}:${listener.port}` });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      parts.readiness.stopping();
      if (limits.shutdownDelayMs > 0) await clock.sleep(limits.shutdownDelayMs);
      parts.endWatches();
      await listener.close(DRAIN_MS);
      await parts.server[Symbol.asyncDispose]();
    })();
    return closing;
  };
  return { ...parts.server, address, healthy: () => parts.readiness.alive(), close, [Symbol.asyncDispose]: close };
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function isEverywhere(address: string): boolean {
  return address === "" || address === "0.0.0.0" || address === "::";
}

export interface Parts {
  readonly server: ApiServer;
  readonly readiness: Readiness;
  readonly clientCa: string | undefined;
  /** Ends what would otherwise go on for as long as its client likes. */
  endWatches(): void;
}

/** Everything but the port. `address` is what clients are told. */
export async function assemble(config: ApiServerConfig, deps: ApiServerDeps, address: () => string): Promise<Parts> {
  const { clock, log, random = systemRandom } = deps;
  const { authentication: authn, storage, limits } = config;
  const clientCa = authn.clientCaFile === undefined ? undefined : await readFile(authn.clientCaFile, "utf8");
  const tokens = tokenAuthenticator();
  if (authn.tokenFile !== undefined) {
    for (const { token, user } of parseTokenFile(authn.tokenFile, await readFile(authn.tokenFile, "utf8")))
      tokens.add(token, user);
  }
  const authenticators = [
    ...(clientCa === undefined ? [] : [x509Authenticator({ caPem: clientCa, clock }).authenticate]),
    tokens.authenticate,
  ];
  const graph = createNodeGraph();
  const authorizer = authorizerFor(config.authorizationModes, { graph });
  const store = deps.store ?? (await openStore({ ...storage, clock, log: log.child("store") }));
  const scheme = builtinScheme();
  const registries = new Registries(scheme, {
    store,
    prefix: storage.prefix,
    mediaType: storage.mediaType,
    clock,
    random,
    log: log.child("registry"),
    eventTtlSeconds: Math.ceil(storage.eventTtlMs / 1000),
    garbageCollector: config.garbageCollector,
  });
  const stopping = new AbortController();
  const agents = new AgentConnections(config.agents);
  const namespaces = registries.of(namespaceKind);
  const readiness = new Readiness(store, registries, log.child("health"), { clock, ...storage });
  const admitPod = podAdmission(config.pods);
  const settings = {
    clock,
    random,
    minWatchMs: limits.minRequestTimeoutMs,
    watchList: config.watchList,
    stopping: stopping.signal,
    admit: (kind: Parameters<typeof namespaceLifecycle>[1]): Admit => {
      const inNamespace = namespaceLifecycle(namespaces, kind);
      if (kind.plural !== podKind.plural || kind.group !== podKind.group) return inNamespace;
      return async (scope, object) => (await inNamespace(scope, object)) ?? (await admitPod(scope, object));
    },
  };
  const browsers = (next: Handler): Handler =>
    strictTransportSecurity(config.serving.strictTransportSecurity)(crossOrigin(config.serving.corsOrigins)(next));
  const answer = browsers(
    receive(
      chain(
        [
          failures(log.child("http")),
          deadline(clock, limits.requestTimeoutMs),
          authentication(unionAuthenticator(authenticators, authn.anonymous ? anonymousAuthenticator() : undefined)),
          authorization(authorizer),
        ],
        routing({
          scheme,
          registries,
          settings,
          readiness,
          aliases: config.groupAliases,
          gitVersion: config.gitVersion,
          address,
          extra: { podLog: podLog(registries.of(nodeKind), agents) },
        }),
      ),
      random,
    ),
  );
  const handler = compression()(answer);
  const loopbackToken = (user: UserInfo): string => tokens.issue(user);
  let controllers: AsyncDisposable | undefined;
  let feeding: Promise<void> | undefined;
  const dispose = async (): Promise<void> => {
    await controllers?.[Symbol.asyncDispose]();
    stopping.abort(new Error("the server is stopping"));
    await feeding;
    await agents[Symbol.asyncDispose]();
    await registries[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  };
  try {
    await withTimeout(
      clock,
      storage.initializationTimeoutMs,
      bootstrap(namespaces, stopping.signal),
      `Cannot use the store ${storage.url}: it does not answer`,
    );
    if (config.authorizationModes.includes("Node")) {
      feeding = feedNodeGraph(registries.of(podKind), graph, clock, log, stopping.signal);
    }
    controllers = await startEmbedded(config.embeddedControllers, { handler, loopbackToken, clock, random, log });
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    server: { handler, loopbackToken, [Symbol.asyncDispose]: dispose },
    readiness,
    clientCa,
    endWatches: () => stopping.abort(new Error("the server is stopping")),
  };
}
