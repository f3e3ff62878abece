/** The handler behind the filters: routes of all resources and other paths. */
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { podDisruptionBudgetKind } from "../../api/policy/pod-disruption-budget/kind.ts";
import { includesController } from "../../controllers/controllers.ts";
import type { TokenSettings } from "../../registry/subresources/token-request.ts";
import type { Authenticators } from "../authentication/authenticators.ts";
import { createIssuerDiscovery } from "../authentication/issuer-discovery.ts";
import { createEscalationCheck } from "../authorization/escalation.ts";
import { createReviewHandlers } from "../authorization/reviews.ts";
import type { ApiServerConfig } from "../config/config.ts";
import type { DebugEndpoints } from "../debug/debug-endpoints.ts";
import { createOperatorPages } from "../debug/operator-pages.ts";
import { authorizerAttributes, requireAuthorized } from "../filters/authorization.ts";
import { createBindingHandler, createEvictionHandler } from "../handlers/eviction.ts";
import { createTokenRequestHandler } from "../handlers/token-request.ts";
import { type ComponentChecks, componentStatuses } from "../health/component-statuses.ts";
import type { Readiness } from "../health/readiness.ts";
import { AgentConnections } from "../proxy/agent-connections.ts";
import { createConnectHandlers } from "../proxy/connect.ts";
import { RequestForwarder } from "../proxy/forward.ts";
import { createPodLogHandler } from "../proxy/pod-log.ts";
import type { RequestHandler } from "../request/request-context.ts";
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
  const { config, clock, random, registries, customResources: custom, readiness, metrics, stopping } = base;
  const { authenticators: identities, authorizer, admission } = accessControl;
  const { scheme } = registries;
  return createRouter({
    scheme,
    registries,
    customResources: custom,
    settings: {
      clock,
      random,
      minWatchMs: config.limits.minRequestTimeoutMs,
      watchList: config.watchList,
      scheme,
      cbor: config.cbor,
      stopping,
      admission,
      authorizeCreate: (context) => requireAuthorized(authorizer, { ...authorizerAttributes(context), verb: "create" }),
      escalationCheckFor: createEscalationCheck(authorizer, registries),
    },
    readiness,
    operatorPages: createOperatorPages(config, { metrics, debugEndpoints, clock }),
    groupAliases: config.groupAliases,
    gitVersion: config.gitVersion,
    emulatedVersion: config.apis.emulatedVersion,
    address,
    issuerDiscovery: createIssuerDiscovery({
      issuer: identities.serviceAccounts.issuerName,
      jwksUri: config.authentication.serviceAccounts.jwksUri,
      keys: identities.serviceAccounts.keys,
      address,
    }),
    extraHandlers: await createExtraHandlers(base, accessControl),
  });
}

/** Handlers of subresources and kinds that are not stored objects. */
async function createExtraHandlers(
  base: ServerBase,
  { authenticators: identities, authorizer }: AccessControl,
): Promise<RouterOptions["extraHandlers"]> {
  const { config, clock, log, random, registries, readiness, resources: stack } = base;
  const agents = stack.use(await AgentConnections.open(config.agents, { clock, log: log.child("agents") }));
  const forwarding = stack.use(new RequestForwarder());
  return {
    bindPod: createBindingHandler(registries.of(podKind)),
    evictPod: createEvictionHandler(registries.of(podDisruptionBudgetKind)),
    requestToken: createTokenRequestHandler(registries, tokenRequestSettings(config, identities), config.groupAliases),
    connect: createConnectHandlers({ registries, agents, forwarder: forwarding, random }),
    podLog: createPodLogHandler(registries.of(nodeKind), agents),
    componentStatuses: componentStatuses(componentStatusChecks(readiness, config.embeddedControllers)),
    reviews: createReviewHandlers({
      reviewToken: identities.reviewToken,
      authorizer,
      selectors: config.authorization.selectors,
      clock,
    }),
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
