/**
 * The controllers of the control plane's own objects, as in Kubernetes' pkg/controlplane/controller: they create the
 * objects before the server is ready and recreate those that are deleted.
 */
import { hostname } from "node:os";
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
import type { ClientAuthorities } from "../authentication/authenticators.ts";
import type { FlowController } from "../fairness/flow-controller.ts";
import { ensureSystemObjects, SYSTEM_NAMESPACES } from "./bootstrap-objects.ts";
import { publishAuthenticationTrust, TRUST_CONFIG_MAP, TRUST_NAMESPACES } from "./cluster-authentication-trust.ts";
import { EndpointReconciler, type EndpointReconcilerOptions } from "./endpoint-reconciler.ts";
import { ensureFlowControl } from "./flow-control-bootstrap.ts";
import { FlowControlConsumer } from "./flow-control-consumer.ts";
import { IdentityLease } from "./identity-lease.ts";
import type { ServiceAllocation } from "./kubernetes-service.ts";
import { ensureLegacyTokenTracking } from "./legacy-token-tracking.ts";
import { type PeriodicReconciler, reconcileOnce, runReconcilers } from "./periodic-reconciler.ts";

export interface ControlPlaneOptions {
  readonly registries: Registries;
  readonly serviceAllocation: ServiceAllocation;
  /** Undefined when the server has no address that other hosts can reach. */
  readonly endpoints: EndpointReconcilerOptions | undefined;
  readonly clientAuthorities: ClientAuthorities;
  /** Whether the server has an identity lease, which the gate APIServerIdentity decides; it has one when absent. */
  readonly hasIdentity?: boolean | undefined;
  /** Whether this thread of the process maintains the objects; otherwise it only uses them. True when absent. */
  readonly isMain?: boolean | undefined;
  /** Undefined: flow schemas and priority levels have no effect. */
  readonly flowController: FlowController | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface ControlPlaneControllers {
  /** Resolves after the signal, when this server is removed from the endpoints. Never rejects. */
  readonly ended: Promise<void>;
}

const WITHDRAW_TIMEOUT_MS = 1000;
const SHORT_INTERVAL_MS = 10_000;
const INTERVAL_MS = 60_000;
const SERVICE_REPAIR_INTERVAL_MS = 180_000;
/** Changes that are written together take effect together. */
const FLOW_CONTROL_DELAY_MS = 50;
const LEASE_GC_INTERVAL_MS = 3_600_000;

/** Resolves after the first run of the initial reconcilers; failures are logged and retried. */
export async function startControlPlaneControllers(options: ControlPlaneOptions): Promise<ControlPlaneControllers> {
  const { registries, serviceAllocation, endpoints, clientAuthorities, flowController, clock, log, signal } = options;
  const lease = options.hasIdentity === false ? undefined : new IdentityLease(registries, hostname(), signal);
  const endpointReconciler =
    endpoints === undefined ? undefined : new EndpointReconciler(registries, endpoints, signal);
  const keyOf = <T extends ApiObject>(kind: Kind<T>, name: string, namespace?: string): string =>
    registries.of(kind).objects.key(namespace, name);
  const prefixOf = <T extends ApiObject>(kind: Kind<T>): string => registries.of(kind).objects.prefix();
  const ownReconcilers: readonly PeriodicReconciler[] = [
    {
      name: "the endpoints of the kubernetes service",
      everyMs: SHORT_INTERVAL_MS,
      ensuredKeys: endpointReconciler?.keys ?? [],
      reconcile: async () => await endpointReconciler?.reconcile(),
    },
    ...(lease === undefined
      ? []
      : [{ name: "the API server identity lease", everyMs: SHORT_INTERVAL_MS, reconcile: () => lease.renew() }]),
    {
      name: "flow schemas and priority levels",
      everyMs: INTERVAL_MS,
      ensuredKeys: [prefixOf(flowSchemaKind), prefixOf(priorityLevelConfigurationKind)],
      reconcile: () => ensureFlowControl(registries, signal),
    },
    {
      name: "the cluster authentication trust",
      everyMs: INTERVAL_MS,
      ensuredKeys: TRUST_NAMESPACES.map((each) => keyOf(configMapKind, TRUST_CONFIG_MAP, each)),
      onChange: (callback) => clientAuthorities.onChange(callback),
      reconcile: () => publishAuthenticationTrust(registries, clientAuthorities, clock, signal),
    },
    {
      name: "legacy service account token tracking",
      everyMs: INTERVAL_MS,
      ensuredKeys: [keyOf(configMapKind, LEGACY_TRACKING.name, LEGACY_TRACKING.namespace)],
      reconcile: () => ensureLegacyTokenTracking(registries, clock, signal),
    },
  ];
  /** Runs after the objects exist. */
  const { isMain = true } = options;
  const initialReconcilers = isMain ? ownReconcilers : [];
  const flowControl = flowController === undefined ? undefined : reconcileFlowControl({ ...options, flowController });
  /** These ran before, or readiness does not depend on them. */
  const backgroundReconcilers: readonly PeriodicReconciler[] = [
    {
      name: "namespaces and priority classes",
      everyMs: INTERVAL_MS,
      ensuredKeys: [...SYSTEM_NAMESPACES.map((name) => keyOf(namespaceKind, name)), prefixOf(priorityClassKind)],
      reconcile: () => ensureSystemObjects(registries, signal),
    },
    {
      name: "the kubernetes service",
      everyMs: SHORT_INTERVAL_MS,
      ensuredKeys: serviceAllocation.keys,
      reconcile: () => serviceAllocation.reconcile(),
    },
    { name: "service IP addresses", everyMs: SERVICE_REPAIR_INTERVAL_MS, reconcile: () => serviceAllocation.repair() },
    ...(lease === undefined
      ? []
      : [
          {
            name: "expired API server identity leases",
            everyMs: LEASE_GC_INTERVAL_MS,
            reconcile: () => lease.collectStale(),
          },
        ]),
  ];
  await Promise.all(initialReconcilers.map((each) => reconcileOnce(each, log, signal)));
  if (flowControl !== undefined) await reconcileOnce(flowControl, log, signal);
  const reconcilers = [
    ...initialReconcilers,
    ...(isMain ? backgroundReconcilers : []),
    ...(flowControl === undefined ? [] : [flowControl]),
  ];
  const { ended } = runReconcilers(reconcilers, {
    feed: registries.feed,
    clock,
    log,
    signal,
  });
  const withdrawn = ended
    .then(async () => {
      if (isMain && endpointReconciler !== undefined)
        await withTimeout(clock, WITHDRAW_TIMEOUT_MS, endpointReconciler.withdraw(), "the store does not answer");
    })
    .catch((error: unknown) =>
      log.warn("Cannot remove this server from the endpoints of the kubernetes service", { error: String(error) }),
    );
  return { ended: withdrawn };
}

function reconcileFlowControl({
  registries,
  flowController,
  clock,
  signal,
}: ControlPlaneOptions & { readonly flowController: FlowController }): PeriodicReconciler {
  const consumer = new FlowControlConsumer({ registries, controller: flowController, clock, signal });
  const kinds = [flowSchemaKind, priorityLevelConfigurationKind];
  return {
    name: "the flow schemas and priority levels in effect",
    everyMs: INTERVAL_MS,
    delayMs: FLOW_CONTROL_DELAY_MS,
    watchedKeys: kinds.map((kind) => registries.of<ApiObject>(kind).objects.prefix()),
    reconcile: () => consumer.reconcile(),
  };
}
