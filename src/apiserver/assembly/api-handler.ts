/** The handler behind the filters: routes of all resources and other paths. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import { includesController } from "../../controllers/controller-manager.ts";
import { deleteNamespace } from "../../registry/delete-namespace.ts";
import type { TokenSettings } from "../../registry/subresources/token-request.ts";
import { lazy } from "../../std/async/lazy.ts";
import type { Authenticators } from "../authentication/authenticators.ts";
import { createIssuerDiscovery } from "../authentication/issuer-discovery.ts";
import { createEscalationCheck } from "../authorization/escalation.ts";
import { createReviewHandlers } from "../authorization/reviews.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { DebugEndpoints } from "../debug/debug-endpoints.ts";
import { createOperatorPages } from "../debug/operator-pages.ts";
import { authorizerAttributes, requireAuthorized, requireUnsafeDelete } from "../filters/authorization.ts";
import { createBindingHandler } from "../handlers/binding.ts";
import { createEvictionHandler } from "../handlers/eviction.ts";
import { createReviewHandler } from "../handlers/review.ts";
import { createTokenRequestHandler } from "../handlers/token-request.ts";
import { type ComponentChecks, componentStatuses } from "../health/component-statuses.ts";
import type { Readiness } from "../health/readiness.ts";
import { AgentConnections } from "../proxy/agent-connections.ts";
import { createConnectHandlers } from "../proxy/connect.ts";
import { RequestForwarder } from "../proxy/forward.ts";
import { registerStreamMetrics } from "../proxy/streams/stream-metrics.ts";
import type { RequestHandler } from "../request/request-context.ts";
import { createMetricsApi } from "../resource-metrics/metrics-api.ts";
import { Negotiator } from "../responses/representation.ts";
import { AgentTunnels } from "../tunnels/agent-tunnels.ts";
import { createTunnelHandler } from "../tunnels/tunnel-handler.ts";
import type { AccessControl } from "./access-control.ts";
import { createRouter, type RouterOptions } from "./router.ts";
import type { ServerBase } from "./server-base.ts";

export interface ApiHandlerOptions {
  /** The host and port that clients connect to. */
  readonly address: () => string;
  readonly debugEndpoints: DebugEndpoints;
}

export async function createApiHandler(
  base: ServerBase,
  accessControl: AccessControl,
  { address, debugEndpoints }: ApiHandlerOptions,
): Promise<RequestHandler> {
  const { config, clock, random, registries, customResources, readiness, metrics, stopping, aggregator } = base;
  const { authenticators, authorizer, admission } = accessControl;
  const { scheme } = registries;
  const { threads } = base;
  const tunnels = base.resources.use(
    new AgentTunnels({
      clock,
      log: base.log.child("tunnels"),
      metrics: metrics.registry,
      share: threads && ((local) => threads.shareTunnels(local)),
    }),
  );
  const router = createRouter({
    scheme,
    registries,
    customResources,
    settings: {
      clock,
      random,
      minWatchMs: config.limits.minRequestTimeoutMs,
      watchList: config.watchList,
      scheme,
      cbor: config.cbor,
      negotiator: new Negotiator(config.cbor),
      stopping,
      admission,
      authorizeCreate: (context) => requireAuthorized(authorizer, { ...authorizerAttributes(context), verb: "create" }),
      authorizeUnsafeDelete: (context) => requireUnsafeDelete(authorizer, context),
      escalationCheckFor: createEscalationCheck(authorizer, registries),
    },
    readiness,
    operatorPages: createOperatorPages(config, {
      metrics,
      debugEndpoints,
      clock,
      flowController: base.flowControl?.controller,
      threads: base.threads,
    }),
    groupAliases: config.groupAliases,
    gitVersion: config.gitVersion,
    emulatedVersion: config.apis.emulatedVersion,
    address,
    issuerDiscovery: createIssuerDiscovery({
      issuer: authenticators.serviceAccounts.issuerName,
      jwksUri: config.authentication.serviceAccounts.jwksUri,
      keys: authenticators.serviceAccounts.keys,
      address,
    }),
    extraHandlers: await createExtraHandlers(base, accessControl, tunnels),
    openTunnel: createTunnelHandler(tunnels),
    aggregator,
  });
  return base.peers === undefined ? router : base.peers.filter(router);
}

/** Handlers of subresources and kinds that are not stored objects. */
async function createExtraHandlers(
  base: ServerBase,
  { authenticators, authorizer }: AccessControl,
  tunnels: AgentTunnels,
): Promise<RouterOptions["extraHandlers"]> {
  const { config, clock, log, random, registries, readiness, metrics, resources, localAgent } = base;
  const connector = base.egress?.("cluster");
  const agents = resources.use(
    await AgentConnections.open(config.agents, { clock, log: log.child("agents"), tunnels, localAgent, connector }),
  );
  const forwarder = resources.use(new RequestForwarder(connector));
  const pods = registries.of(podKind);
  const nodes = registries.of(nodeKind);
  const bindingHandler = createBindingHandler(pods);
  const tokenSettings = tokenRequestSettings(config, authenticators);
  const statuses = componentStatuses(componentStatusChecks(readiness, config.embeddedControllers));
  const { selectors } = config.authorization;
  const { features } = config.observability;
  const isEnabled = (gate: string): boolean => features.some(({ name, enabled }) => enabled && name === gate);
  const podLogDeps = { pods, nodes, agents, splitLogs: isEnabled("PodLogsQuerySplitStreams") };
  const podLog = lazy(async () => (await import("../proxy/pod-log.ts")).createPodLogHandler(podLogDeps));
  const reviews = Object.entries(
    createReviewHandlers({ reviewToken: authenticators.reviewToken, authorizer, selectors, clock }),
  );
  return {
    subresources: {
      "create pods/binding": bindingHandler,
      "create pods/eviction": createEvictionHandler(pods, registries.of(podDisruptionBudgetKind)),
      "get pods/log": async (...request) => await (await podLog())(...request),
      "create serviceaccounts/token": createTokenRequestHandler(registries, tokenSettings, config.groupAliases.served),
    },
    connect: createConnectHandlers({
      registries,
      agents,
      forwarder,
      random,
      translatesStreams: isEnabled("TranslateStreamCloseWebsocketRequests"),
      tunnelsPortForward: isEnabled("PortForwardWebsockets"),
      metrics: registerStreamMetrics(metrics.registry),
    }),
    notStored: {
      ...createMetricsApi({ pods, nodes, agents, clock, log: log.child("resource-metrics"), resources }),
      "create Binding": bindingHandler,
      "list ComponentStatus": statuses.list,
      "get ComponentStatus": statuses.get,
      ...Object.fromEntries(reviews.map(([kind, review]) => [`create ${kind}`, createReviewHandler(review)])),
    },
    deletions: {
      namespaces: (_target, scope, name, options) =>
        deleteNamespace(registries.of(namespaceKind), scope, name, options),
    },
  };
}

function tokenRequestSettings({ authentication }: ApiServerConfig, { serviceAccounts }: Authenticators): TokenSettings {
  const { maxTokenMs, extendTokens } = authentication.serviceAccounts;
  const { issuer, audiences, maxSeconds: signerMaxSeconds } = serviceAccounts;
  const maxSeconds = maxTokenMs === 0 ? (signerMaxSeconds ?? 0) : Math.floor(maxTokenMs / 1000);
  return { issuer, audiences, maxSeconds, extend: extendTokens, extendedSecondsMax: signerMaxSeconds };
}

/** Only components that run in this process have a status. */
function componentStatusChecks(readiness: Readiness, controllers: readonly string[]): ComponentChecks {
  const healthy = async (): Promise<void> => {};
  const controllerManager = controllers.length === 0 ? {} : { "controller-manager": healthy };
  const scheduler = includesController(controllers, "scheduler") ? { scheduler: healthy } : {};
  return { "etcd-0": () => readiness.probeStore(), ...controllerManager, ...scheduler };
}
