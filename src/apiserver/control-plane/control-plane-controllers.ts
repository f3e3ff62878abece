/** What the server keeps in the cluster for itself and its clients: there after the start, and again if it is lost. */
import { hostname } from "node:os";
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import { flowSchemaKind } from "../../api/flowcontrol/flow-schema/kind.ts";
import { priorityLevelConfigurationKind } from "../../api/flowcontrol/priority-level-configuration/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { priorityClassKind } from "../../api/scheduling/priority-class/kind.ts";
import { LEGACY_TRACKING } from "../../auth/service-account/legacy-tokens.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import type { Authorities } from "../authentication/authenticators.ts";
import { keepApiServiceStatus } from "./api-service-availability.ts";
import { bootstrapObjects, SYSTEM_NAMESPACES } from "./bootstrap-objects.ts";
import { AUTHENTICATION, AUTHENTICATION_NAMESPACES, publishAuthentication } from "./cluster-authentication-trust.ts";
import { OwnEndpoints, type OwnEndpointsOptions } from "./endpoint-reconciler.ts";
import { keepFlowControl } from "./flow-control-bootstrap.ts";
import { keepFlowSchemaStatus } from "./flow-schema-status.ts";
import { IdentityLease } from "./identity-lease.ts";
import type { OwnService } from "./kubernetes-service.ts";
import { trackLegacyTokens } from "./legacy-token-tracking.ts";
import { attempt, type Chore, keep } from "./periodic-reconciler.ts";
import { keepServiceBlocks } from "./service-cidrs.ts";

export interface OwnObjectsOptions {
  readonly registries: Registries;
  readonly service: OwnService;
  /** Undefined where nobody could reach the server. */
  readonly endpoints: OwnEndpointsOptions | undefined;
  readonly authorities: Authorities;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface OwnObjects {
  /** Resolves once nothing is kept any more, after the signal. Never rejects. */
  readonly ended: Promise<void>;
}

const WITHDRAW_MS = 1000;
const SOON_MS = 10_000;
const OFTEN_MS = 60_000;
const REPAIR_MS = 180_000;
const SELDOM_MS = 3_600_000;

/** Resolves when all is there; what cannot be made is logged and tried again. */
export async function startOwnObjects(options: OwnObjectsOptions): Promise<OwnObjects> {
  const { registries, service, endpoints, authorities, clock, log, signal } = options;
  const lease = new IdentityLease(registries, hostname(), signal);
  const own = endpoints === undefined ? undefined : new OwnEndpoints(registries, endpoints, signal);
  const keyOf = <T extends ApiObject>(kind: Kind<T>, name: string, namespace?: string): string =>
    registries.of(kind).objects.key(namespace, name);
  const prefixOf = <T extends ApiObject>(kind: Kind<T>): string => registries.of(kind).objects.prefix();
  const chores: readonly Chore[] = [
    {
      name: "the endpoints of the API",
      everyMs: SOON_MS,
      kept: own?.keys ?? [],
      run: async () => await own?.reconcile(),
    },
    { name: "the server's lease", everyMs: SOON_MS, run: () => lease.renew() },
    { name: "service blocks", everyMs: SOON_MS, run: () => keepServiceBlocks(registries, signal) },
    {
      name: "flow control",
      everyMs: OFTEN_MS,
      kept: [prefixOf(flowSchemaKind), prefixOf(priorityLevelConfigurationKind)],
      run: () => keepFlowControl(registries, signal),
    },
    {
      name: "what extension servers know of clients",
      everyMs: OFTEN_MS,
      kept: AUTHENTICATION_NAMESPACES.map((each) => keyOf(configMapKind, AUTHENTICATION, each)),
      follow: (changed) => authorities.follow(changed),
      run: () => publishAuthentication(registries, authorities, clock, signal),
    },
    {
      name: "since when the use of tokens in secrets is tracked",
      everyMs: OFTEN_MS,
      kept: [keyOf(configMapKind, LEGACY_TRACKING.name, LEGACY_TRACKING.namespace)],
      run: () => trackLegacyTokens(registries, clock, signal),
    },
  ];
  /** Done already, or nothing that anybody waits for. */
  const later: readonly Chore[] = [
    {
      name: "namespaces and priority classes",
      everyMs: OFTEN_MS,
      kept: [...SYSTEM_NAMESPACES.map((name) => keyOf(namespaceKind, name)), prefixOf(priorityClassKind)],
      run: () => bootstrapObjects(registries, signal),
    },
    { name: "the service of the API", everyMs: SOON_MS, kept: service.keys, run: () => service.keep() },
    {
      name: "what flow schemas say of their priority levels",
      everyMs: OFTEN_MS,
      watched: [prefixOf(flowSchemaKind), prefixOf(priorityLevelConfigurationKind)],
      run: () => keepFlowSchemaStatus(registries, signal),
    },
    {
      name: "what API services say of their servers",
      everyMs: SOON_MS,
      watched: [prefixOf(apiServiceKind)],
      run: () => keepApiServiceStatus(registries, signal),
    },
    { name: "addresses of services", everyMs: REPAIR_MS, run: () => service.repair() },
    { name: "leases of servers that are gone", everyMs: SELDOM_MS, run: () => lease.collect() },
  ];
  await Promise.all(chores.map((chore) => attempt(chore, log, signal)));
  const { ended } = keep([...chores, ...later], { feed: registries.feed, clock, log, signal });
  const withdrawn = ended
    .then(async () => {
      if (own !== undefined) await withTimeout(clock, WITHDRAW_MS, own.withdraw(), "the store does not answer");
    })
    .catch((error: unknown) =>
      log.warn("Cannot take this server from the endpoints of the API", { error: String(error) }),
    );
  return { ended: withdrawn };
}
