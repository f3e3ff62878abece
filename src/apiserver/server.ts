/** The server put together. The stages a request passes stand in `handlerOf`, in their order. */
import { isIPv6 } from "node:net";
import type { AdmissionChain } from "../admission/chain.ts";
import { schemeOf } from "../api/builtin.ts";
import { eventKind } from "../api/core/event-kind.ts";
import { nodeKind } from "../api/core/node-kind.ts";
import { podKind } from "../api/core/pod-kind.ts";
import { podDisruptionBudgetKind } from "../api/policy/pod-disruption-budget-kind.ts";
import { createNodeGraph } from "../auth/authz/node-graph.ts";
import type { Authorizer, UserInfo } from "../auth/user.ts";
import { includesController } from "../controllers/controllers.ts";
import type { Filter, Handler } from "../http/message.ts";
import { compression } from "../http/respond.ts";
import { EventBudget } from "../registry/event-budget.ts";
import { withoutPrivileges } from "../registry/privileges.ts";
import { Registries } from "../registry/registries.ts";
import type { TokenSettings } from "../registry/token-request.ts";
import { uncachedKinds } from "../registry/uncached.ts";
import type { Clock } from "../std/clock.ts";
import { hostAddress } from "../std/host-addresses.ts";
import type { Logger } from "../std/log.ts";
import { type RandomSource, systemRandom } from "../std/random.ts";
import { withTimeout } from "../std/with-timeout.ts";
import { openStore } from "../storage/open.ts";
import type { Store } from "../storage/store.ts";
import { openAdmission } from "./admission.ts";
import { AgentConnections } from "./agents.ts";
import { openAuthorizers } from "./authorizers.ts";
import { bootstrap } from "./bootstrap.ts";
import { storedBoundObjects } from "./bound-objects.ts";
import { type ComponentChecks, componentStatuses } from "./component-statuses.ts";
import type { ApiServerConfig } from "./config.ts";
import { chain, type Respond } from "./context.ts";
import { startEmbedded } from "./embedded.ts";
import { escalationCheck } from "./escalation.ts";
import { conversionDeps } from "./extensions/conversion-deps.ts";
import { CustomResources } from "./extensions/custom-resources.ts";
import { type Definitions, serveDefinitions } from "./extensions/definition-controller.ts";
import { flagFile } from "./flag-file.ts";
import { type BehindDoor, type FrontDoor, isEverywhere, openFrontDoor } from "./front-door.ts";
import { type Identities, identitiesOf } from "./identities.ts";
import { issuerDiscovery } from "./issuer-discovery.ts";
import { legacyTokenUse } from "./legacy-token-use.ts";
import { registerLocalApis } from "./local-api-services.ts";
import { feedNodeGraph } from "./node-graph-feed.ts";
import { authorizationDecisions, measuredAuthenticator, measuredAuthorizer } from "./observe/auth-metrics.ts";
import { authenticationObserver } from "./observe/authentication-metrics.ts";
import { authorizerEvents } from "./observe/authorizer-metrics.ts";
import { countingClients } from "./observe/client-metrics.ts";
import { Diagnostics } from "./observe/diagnostics.ts";
import { measuredNodeGraph } from "./observe/node-graph-metrics.ts";
import { operatorPages } from "./observe/pages.ts";
import { measuring } from "./observe/request-metrics.ts";
import { ServerMetrics } from "./observe/server-metrics.ts";
import { allowNodesToJoin } from "./own-objects/node-joining.ts";
import type { OwnEndpointsOptions } from "./own-objects/own-endpoints.ts";
import { type OwnObjects, startOwnObjects } from "./own-objects/own-objects.ts";
import { podLog } from "./pod-log.ts";
import { connectHandlers } from "./proxy/connect.ts";
import { Forwarding } from "./proxy/forward.ts";
import { Readiness } from "./readiness.ts";
import { bindPod, evictPod } from "./resources/subresources.ts";
import { tokenHandler } from "./resources/token.ts";
import { reviews } from "./reviews.ts";
import { routing } from "./routing.ts";
import { servedApis } from "./served-apis.ts";
import { servedAuthority } from "./served-authority.ts";
import { type OwnService, SECURE_PORT, startServices } from "./services.ts";
import { authentication } from "./stages/authentication.ts";
import { attributesOf, authorization, demand } from "./stages/authorization.ts";
import { crossOrigin } from "./stages/cors.ts";
import { deadline } from "./stages/deadline.ts";
import { failures } from "./stages/failures.ts";
import { impersonation } from "./stages/impersonation.ts";
import { maxInFlight } from "./stages/max-in-flight.ts";
import { receive } from "./stages/receive.ts";
import { strictTransportSecurity } from "./stages/transport-security.ts";
import { storedPolicy } from "./stored-policy.ts";

export interface ApiServerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: RandomSource | undefined;
  /** Instead of the one that the configuration names; closed by the server all the same. */
  readonly store?: Store | undefined;
  /** Changes `-v` of the log while the server runs. */
  readonly setVerbosity?: ((level: number) => void) | undefined;
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

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export async function startApiServer(config: ApiServerConfig, deps: ApiServerDeps): Promise<RunningApiServer> {
  const { clock, log, random = systemRandom } = deps;
  const address = { host: config.bindAddress, port: config.securePort };
  const ownAddress = isEverywhere(config.bindAddress) ? await hostAddress() : undefined;
  const external = (): string =>
    externalAddress(config.serving.advertisedHost ?? ownAddress ?? address.host, address.port);
  let door: FrontDoor | undefined;
  const open = async (behind: BehindDoor): Promise<void> => {
    door = await openFrontDoor(config, { clock, log, random }, behind);
    Object.assign(address, door.address);
  };
  const { server, readiness } = await assemble(config, deps, external, open).catch(async (error: unknown) => {
    await door?.[Symbol.asyncDispose]();
    throw error;
  });
  readiness.started();
  log.info("Serving securely", { address: `${address.host}:${address.port}` });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await door?.close();
      await server[Symbol.asyncDispose]();
    })();
    return closing;
  };
  return { ...server, address, healthy: () => readiness.alive(), close, [Symbol.asyncDispose]: close };
}

/** What clients are told. An external host name may come with a port of its own. */
function externalAddress(host: string, port: number): string {
  if (isIPv6(host)) return `[${host}]:${port}`;
  return /:\d+$/.test(host) ? host : `${host}:${port}`;
}

export interface Parts {
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
export async function assemble(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  address: () => string,
  open: (behind: BehindDoor) => Promise<void> = async () => {},
): Promise<Parts> {
  const { clock, log, random = systemRandom } = deps;
  const { storage } = config;
  const apis = servedApis(config.apis);
  for (const warning of apis.warnings) log.warn(warning);
  const stopping = new AbortController();
  const metrics = await ServerMetrics.create(config, clock, log.child("metrics"));
  const identities = measuredIdentities(
    await identitiesOf(config.authentication, {
      clock,
      random,
      log: log.child("authentication"),
      observe: authenticationObserver(metrics.registry, clock),
      used: legacyTokenUse(() => registries, log.child("authentication"), stopping.signal),
      find: storedBoundObjects(() => registries, stopping.signal),
    }),
    metrics,
    clock,
  );
  const graph = createNodeGraph();
  const measuredGraph = measuredNodeGraph(graph, metrics.registry, clock);
  const opened = deps.store ?? (await openStore({ ...storage, clock, log: log.child("store") }));
  await using unused = new AsyncDisposableStack();
  unused.use(identities);
  const store = metrics.measured(unused.use(opened));
  const registries = new Registries(schemeOf(apis.kinds), {
    store,
    prefix: storage.prefix,
    mediaType: storage.mediaType,
    clock,
    random,
    log: log.child("registry"),
    uncached: uncachedKinds(storage.uncached),
    eventTtlSeconds: Math.ceil(storage.eventTtlMs / 1000),
    deleteCollectionWorkers: config.deleteCollectionWorkers,
    garbageCollector: config.garbageCollector || includesController(config.embeddedControllers, "garbage-collector"),
    bindingLabels: config.observe.features.some(
      ({ name, enabled }) => enabled && name === "PodTopologyLabelsAdmission",
    ),
    policy: config.admission.allowPrivileged ? undefined : withoutPrivileges,
  });
  metrics.serve(registries);
  const conversion = conversionDeps(config, {
    registries,
    clock,
    random,
    metrics: metrics.registry,
    stopping: stopping.signal,
  });
  const custom = new CustomResources({ registries, conversion, log: log.child("extensions") });
  const policy = storedPolicy(registries);
  const decided = authorizationDecisions(metrics.registry);
  const authorizers = unused.use(
    await openAuthorizers(config, {
      graph,
      rules: policy,
      nodeSelectors: config.authorization.nodeSelectors,
      decided,
      clock,
      random,
      log: log.child("authorization"),
      observe: authorizerEvents(metrics.registry, clock),
    }),
  );
  const authorizer = measuredAuthorizer(authorizers.authorizer, metrics.registry, clock);
  const admission = await openAdmission(config, {
    registries,
    authorizer,
    clock,
    random,
    log: log.child("admission"),
    metrics: metrics.registry,
    stopping: stopping.signal,
  });
  const stop = (): void => stopping.abort(new Error("the server is stopping"));
  const agents = await AgentConnections.open(config.agents, { clock, log: log.child("agents") });
  const forwarding = new Forwarding();
  const readiness = new Readiness(store, registries, log.child("health"), {
    clock,
    ...storage,
    hooks: { fairness: config.limits.inFlight.shared },
    livezGraceMs: config.livezGraceMs,
    observe: metrics.observeHealth,
  });
  const debugging = { clock, log: log.child("debug"), setVerbosity: deps.setVerbosity ?? (() => {}) };
  const diagnostics = new Diagnostics(config.observe, debugging);
  const endpoint = endpointOf(config, {
    clock,
    random,
    registries,
    custom,
    readiness,
    agents,
    forwarding,
    identities,
    authorizer,
    admission,
    address,
    metrics,
    diagnostics,
    stopping: stopping.signal,
  });
  const handler = handlerOf(config, { clock, log, random, identities, authorizer, metrics }, endpoint);
  const counted = countingClients(handler, metrics.registry, address);
  const { loopbackToken } = identities;
  const servicesDeps = { registries, log: log.child("services"), signal: stopping.signal };
  let controllers: AsyncDisposable | undefined;
  let events: EventBudget | undefined;
  let service: OwnService | undefined;
  let own: OwnObjects | undefined;
  let definitions: Definitions | undefined;
  let feeding: Promise<void> | undefined;
  const dispose = async (): Promise<void> => {
    await controllers?.[Symbol.asyncDispose]();
    stop();
    await events?.[Symbol.asyncDispose]();
    await feeding;
    await definitions?.ended;
    await service?.repaired;
    await own?.ended;
    await agents[Symbol.asyncDispose]();
    await authorizers[Symbol.asyncDispose]();
    await forwarding[Symbol.asyncDispose]();
    await identities[Symbol.asyncDispose]();
    await registries[Symbol.asyncDispose]();
    await custom[Symbol.asyncDispose]();
    await metrics[Symbol.asyncDispose]();
    await diagnostics[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  };
  unused.move();
  try {
    // Before anything that may take long, which is when somebody wants to look.
    const { debugSocket } = config.observe;
    if (debugSocket !== undefined) await diagnostics.openSocket(debugSocket, debugging);
    readiness.done("handlers");
    await open({ handler, readiness, authorities: identities.authorities });
    const started = bootstrap(registries, stopping.signal).then(async () => {
      await policy.ready();
      readiness.done("bootstrap");
      definitions = serveDefinitions({
        registries,
        custom,
        aliases: config.groupAliases,
        clock,
        log: log.child("extensions"),
        signal: stopping.signal,
      });
      await definitions.ready();
      readiness.done("definitions");
      service = await startServices({ ...config.services, securePort: config.securePort }, servicesDeps);
      own = await startOwnObjects({
        registries,
        service,
        endpoints: await ownEndpoints(config),
        authorities: identities.authorities,
        clock,
        log: log.child("own-objects"),
        signal: stopping.signal,
      });
      readiness.done("services");
      await registerLocalApis(registries, config.groupAliases, stopping.signal);
      readiness.done("apis");
      metrics.started(registries);
    });
    const failure = `Cannot use the store ${storage.url}: it does not answer`;
    await withTimeout(clock, storage.initializationTimeoutMs, started, failure);
    events = new EventBudget({
      feed: registries.feed,
      objects: registries.of(eventKind).objects,
      clock,
      log: log.child("events"),
    });
    if (authorizers.uses("Node")) {
      feeding = feedNodeGraph(registries, measuredGraph, clock, log, stopping.signal);
    }
    const clusterCa = config.clusterCa ?? (await servedAuthority(config.serving, identities.authorities.clients()));
    const { kinds } = apis;
    const queueMetrics = metrics.queues;
    const embedded = {
      handler: counted,
      loopbackToken,
      clock,
      random,
      log,
      clusterCa,
      signing: config.signing,
      signLegacy: identities.serviceAccounts.signLegacy,
      kinds,
      queueMetrics,
    };
    if (includesController(config.embeddedControllers, "csrapproving")) {
      const { certificateAuthorityFile: file } = config.agents;
      const agentCa = file === undefined ? undefined : await flagFile("--svclet-certificate-authority", file);
      const info = clusterCa === undefined ? undefined : { server: `https://${address()}`, ca: clusterCa, agentCa };
      await allowNodesToJoin(registries, info, stopping.signal);
    }
    controllers = await startEmbedded(config.embeddedControllers, embedded);
  } catch (error) {
    await dispose();
    throw error;
  }
  const server = { handler, loopbackToken, [Symbol.asyncDispose]: dispose };
  return { server, readiness, metrics, endWatches: stop };
}

/** Loopback means another host to everybody else. */
async function ownEndpoints({
  bindAddress,
  securePort,
  services,
}: ApiServerConfig): Promise<OwnEndpointsOptions | undefined> {
  const { endpointReconciler: type, advertiseAddress } = services;
  const isBound = !isEverywhere(bindAddress) && !isLoopback(bindAddress);
  const address = advertiseAddress ?? (isBound ? bindAddress : await hostAddress());
  return isLoopback(address) ? undefined : { type, address, port: securePort === 0 ? SECURE_PORT : securePort };
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}

interface Stages extends Required<Pick<ApiServerDeps, "clock" | "log">> {
  readonly random: RandomSource;
  readonly identities: Identities;
  readonly authorizer: Authorizer;
  readonly metrics: ServerMetrics;
}

function measuredIdentities(identities: Identities, { registry }: ServerMetrics, clock: Clock): Identities {
  return { ...identities, authenticate: measuredAuthenticator(identities.authenticate, registry, clock) };
}

/** A request's way through the server, from the connection inwards. */
function handlerOf(config: ApiServerConfig, stages: Stages, endpoint: Respond): Handler {
  const { clock, log, random, identities, authorizer, metrics } = stages;
  const stagesInOrder = chain(
    [
      measuring(metrics.requests, clock),
      failures(log.child("http")),
      deadline(clock, config.limits.requestTimeoutMs, metrics.requests.terminated),
      authentication(identities.authenticate, clock, log.child("authentication")),
      impersonation(authorizer),
      maxInFlight(config.limits.inFlight, metrics.requests.terminated),
      authorization(authorizer, config.authorization.selectors),
    ],
    endpoint,
  );
  const filters: readonly Filter[] = [
    compression(),
    strictTransportSecurity(config.serving.strictTransportSecurity),
    crossOrigin(config.serving.corsOrigins),
  ];
  return filters.reduceRight<Handler>((next, filter) => filter(next), receive(stagesInOrder, random));
}

interface Behind extends Pick<ApiServerDeps, "clock"> {
  readonly random: RandomSource;
  readonly registries: Registries;
  readonly custom: CustomResources;
  readonly readiness: Readiness;
  readonly agents: AgentConnections;
  readonly forwarding: Forwarding;
  readonly identities: Identities;
  readonly authorizer: Authorizer;
  readonly admission: AdmissionChain;
  readonly address: () => string;
  readonly metrics: ServerMetrics;
  readonly diagnostics: Diagnostics;
  readonly stopping: AbortSignal;
}

/** What answers behind the stages. */
function endpointOf(config: ApiServerConfig, behind: Behind): Respond {
  const {
    clock,
    random,
    registries,
    custom,
    readiness,
    agents,
    forwarding,
    identities,
    authorizer,
    admission,
    address,
    stopping,
  } = behind;
  const { metrics, diagnostics } = behind;
  return routing({
    scheme: registries.scheme,
    registries,
    custom,
    settings: {
      clock,
      random,
      minWatchMs: config.limits.minRequestTimeoutMs,
      watchList: config.watchList,
      scheme: registries.scheme,
      cbor: config.cbor,
      stopping,
      admission,
      mayCreate: (context) => demand(authorizer, { ...attributesOf(context), verb: "create" }),
      confirm: escalationCheck(authorizer, registries),
    },
    readiness,
    pages: operatorPages(config, { metrics, diagnostics, clock }),
    aliases: config.groupAliases,
    gitVersion: config.gitVersion,
    emulatedVersion: config.apis.emulatedVersion,
    address,
    issuerDiscovery: issuerDiscovery({
      issuer: identities.serviceAccounts.issuerName,
      jwksUri: config.authentication.serviceAccounts.jwksUri,
      keys: identities.serviceAccounts.keys,
      address,
    }),
    extra: {
      bindPod: bindPod(registries.of(podKind)),
      evictPod: evictPod(registries.of(podDisruptionBudgetKind)),
      requestToken: tokenHandler(registries, tokenSettings(config, identities), config.groupAliases),
      connect: connectHandlers({ registries, agents, forwarding, random }),
      podLog: podLog(registries.of(nodeKind), agents),
      componentStatuses: componentStatuses(componentChecks(readiness, config.embeddedControllers)),
      reviews: reviews({
        reviewToken: identities.reviewToken,
        authorizer,
        selectors: config.authorization.selectors,
        clock,
      }),
    },
  });
}

function tokenSettings({ authentication }: ApiServerConfig, { serviceAccounts }: Identities): TokenSettings {
  const { maxTokenMs, extendTokens } = authentication.serviceAccounts;
  const { issuer, audiences, maxSeconds: most } = serviceAccounts;
  const maxSeconds = maxTokenMs === 0 ? (most ?? 0) : Math.floor(maxTokenMs / 1000);
  return { issuer, audiences, maxSeconds, extend: extendTokens, extendedSecondsMax: most };
}

/** Parts that run elsewhere are not known of. */
function componentChecks(readiness: Readiness, controllers: readonly string[]): ComponentChecks {
  const running = async (): Promise<void> => {};
  const embedded = controllers.length === 0 ? {} : { "controller-manager": running };
  const scheduling = includesController(controllers, "scheduler") ? { scheduler: running } : {};
  return { "etcd-0": () => readiness.storeAnswers(), ...embedded, ...scheduling };
}
