/** The base of the server: the served kinds, the store, registries, metrics and readiness. */
import { schemeOf } from "../../api/builtin.ts";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import type { Lease } from "../../api/coordination/lease/schema.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Namespace } from "../../api/core/namespace/schema.ts";
import type { Auditor, AuditorDeps } from "../../audit/auditor.ts";
import { includesController } from "../../controllers/controller-manager.ts";
import type { FeatureLookup } from "../../flags/gates.ts";
import { forbidPrivileged } from "../../registry/policies/allow-privileged.ts";
import { combinePolicies, requireAdminLabel } from "../../registry/policies/device-admin-access.ts";
import { uncachedKinds } from "../../registry/read/uncached.ts";
import { Registries } from "../../registry/registries.ts";
import { type RandomSource, systemRandom } from "../../std/crypto/random.ts";
import type { Logger, LogOptions } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Store } from "../../storage/store.ts";
import type { Tracer } from "../../tracing/tracer.ts";
import { ProxyClientCertificate } from "../admission/proxy-client-certificate.ts";
import { type Aggregator, createAggregator } from "../aggregation/aggregator.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { createConversionDeps } from "../custom-resources/conversion/conversion-deps.ts";
import { CustomResources } from "../custom-resources/custom-resources.ts";
import { type ServedApis, selectServedApis } from "../discovery/api-enablement.ts";
import type { EgressSelectorDeps, FindConnector } from "../egress/egress-selector.ts";
import { webhookConnectors } from "../egress/webhook-connectors.ts";
import type { PriorityAndFairness } from "../filters/priority-and-fairness.ts";
import { Readiness } from "../health/readiness.ts";
import { ServerMetrics } from "../metrics/server-metrics.ts";
import type { Peers, PeersDeps } from "../peers/peers.ts";
import type { LocalAgent } from "../proxy/local-agent.ts";
import type { ThreadLink } from "../workers/thread-link.ts";
import { explainUncontrolled } from "./controlled-kinds.ts";
import { createFlowControl } from "./flow-control.ts";
import { openStores, type Stores } from "./stores.ts";
import { unenforcedWarnings } from "./unenforced-kinds.ts";

export interface ApiServerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: RandomSource | undefined;
  /** Replaces the store of the configuration; the server closes it. */
  readonly store?: Store | undefined;
  /** Sets the log verbosity (`-v`) while the server runs. */
  readonly setVerbosity?: ((level: number) => void) | undefined;
  /** The agent of this process; undefined: there is none. */
  readonly localAgent?: LocalAgent | undefined;
  /** Identifies this server among its peers; the name of the host when absent. */
  readonly hostName?: string | undefined;
  /** The options of the log, for threads. */
  readonly logOptions?: Partial<LogOptions> | undefined;
  /** The other threads of the server; undefined: there are none. */
  readonly threads?: ThreadLink | undefined;
}

/** The lifetime of the server's parts. */
export interface ServerLifetime {
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
  /** Disposed after that, in reverse order. */
  readonly resources: AsyncDisposableStack;
}

export interface ServerBase extends ServerLifetime {
  readonly config: ApiServerConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: RandomSource;
  /** The feature gates that are on. */
  readonly features: FeatureLookup;
  readonly apis: ServedApis;
  readonly metrics: ServerMetrics;
  /** Undefined: no request is recorded. */
  readonly auditor: Auditor | undefined;
  /** Undefined: no traces are exported. */
  readonly tracer: Tracer | undefined;
  readonly store: Store;
  readonly registries: Registries;
  readonly customResources: CustomResources;
  readonly proxyClientCertificate: ProxyClientCertificate;
  readonly readiness: Readiness;
  /** Undefined: plain limits apply to requests in flight. */
  readonly flowControl: PriorityAndFairness | undefined;
  readonly aggregator: Aggregator;
  /** Undefined: other API servers are not known to this one. */
  readonly peers: Peers | undefined;
  readonly localAgent: LocalAgent | undefined;
  /** Undefined: the server has one thread. */
  readonly threads: ThreadLink | undefined;
  /** Undefined: all connections are direct. */
  readonly egress: FindConnector | undefined;
}

export async function createServerBase(
  config: ApiServerConfig,
  deps: ApiServerDeps,
  life: ServerLifetime,
): Promise<ServerBase> {
  const { clock, log, random = systemRandom } = deps;
  const { resources, stopping } = life;
  const { storage } = config;
  const apis = selectServedApis(config.apis, config.observability.features);
  const features = enabledFeatures(config);
  for (const warning of apis.warnings) log.warn(warning);
  const metrics = resources.use(await ServerMetrics.create(config, clock, log.child("metrics")));
  const egress = await openEgress(config, { clock, metrics: metrics.registry, log });
  // Disposed last, with the spans of the last requests.
  const { tracingFile } = config;
  const tracerDeps = {
    clock,
    log: log.child("tracing"),
    random,
    connector: egress?.("controlplane", "any"),
    resources,
  };
  const tracer =
    tracingFile === undefined
      ? undefined
      : await (await import("./open-tracer.ts")).openTracer(tracingFile, tracerDeps);
  // Disposed last but one: the requests that end with the server are recorded as well.
  const auditor = await openAuditor(config, {
    clock,
    log: log.child("audit"),
    random,
    metrics: metrics.registry,
    connector: egress?.("controlplane"),
    threads: deps.threads,
  });
  if (auditor !== undefined) resources.use(auditor);
  const { store: given, threads } = deps;
  const storesDeps = { kinds: apis.kinds, clock, log, metrics, resources, store: given, threads };
  const stores = await openStores(config, { ...storesDeps, connector: egress?.("etcd", "any") });
  const { store, kmsChecks } = stores;
  const registries = resources.use(createRegistries(config, { apis, features, ...stores, clock, log, random }));
  metrics.setScheme(registries);
  const flowControl = await createFlowControl(config, { registries, metrics, clock, log, resources });
  const outbound = resources.use(
    await ProxyClientCertificate.open(config.proxyClientCertificate, { clock, log: log.child("webhooks") }),
  );
  const webhookClient = {
    registries,
    clock,
    random,
    metrics: metrics.registry,
    stopping,
    identity: () => outbound.pair,
    connectorFor: webhookConnectors(egress),
  };
  const conversion = createConversionDeps(config, webhookClient);
  const custom = resources.use(new CustomResources({ registries, conversion, log: log.child("extensions") }));
  const readiness = new Readiness(store, registries, log.child("health"), {
    clock,
    ...storage,
    hooks: {
      fairness: config.limits.inFlight.shared,
      encryptionReload: storage.encryption?.reload,
      identity: features.has("APIServerIdentity"),
      storageReadiness: features.has("WatchCacheInitializationPostStartHook"),
    },
    kmsChecks,
    livezGraceMs: config.livezGraceMs,
    observe: metrics.observeHealth,
  });
  const aggregator = createAggregator(config, {
    registries,
    log: log.child("aggregator"),
    metrics,
    stopping,
    clientCertificate: () => outbound.pair,
    connector: () => egress?.("cluster"),
  });
  resources.use(aggregator);
  const peers = await openPeers(config, {
    registries,
    kinds: apis.kinds,
    log: log.child("peers"),
    metrics: metrics.registry,
    clientCertificate: () => outbound.pair,
    stopping,
    sendsUid: features.has("RemoteRequestHeaderUID"),
    host: deps.hostName,
    isMain: threads?.isMain ?? true,
  });
  if (peers !== undefined) resources.use(peers);
  return {
    ...life,
    config,
    clock,
    log,
    random,
    features,
    apis,
    metrics,
    auditor,
    tracer,
    store,
    registries,
    customResources: custom,
    proxyClientCertificate: outbound,
    readiness,
    flowControl,
    aggregator,
    peers,
    localAgent: deps.localAgent,
    threads,
    egress,
  };
}

async function openEgress(
  { egressSelectorFile: path }: ApiServerConfig,
  { log, ...deps }: EgressSelectorDeps & Pick<ServerBase, "log">,
): Promise<FindConnector | undefined> {
  if (path === undefined) return undefined;
  const [{ createEgressSelector }, { loadEgressConfiguration }] = await Promise.all([
    import("../egress/egress-selector.ts"),
    import("../egress/configuration.ts"),
  ]);
  const loaded = loadEgressConfiguration(path);
  for (const warning of loaded.warnings) log.warn(warning);
  return createEgressSelector(loaded, deps);
}

async function openPeers({ peers }: ApiServerConfig, deps: PeersDeps): Promise<Peers | undefined> {
  return peers === undefined ? undefined : await (await import("../peers/peers.ts")).Peers.open(peers, deps);
}

async function openAuditor({ audit }: ApiServerConfig, deps: AuditorDeps): Promise<Auditor | undefined> {
  if (audit === undefined) return undefined;
  return await (await import("../../audit/auditor.ts")).openAuditor(audit, deps);
}

function enabledFeatures({ observability }: ApiServerConfig): FeatureLookup {
  return new Set(observability.features.filter(({ enabled }) => enabled).map(({ name }) => name));
}

type RegistriesDeps = Pick<ServerBase, "apis" | "features" | "clock" | "log" | "random"> & Omit<Stores, "kmsChecks">;

function createRegistries(
  config: ApiServerConfig,
  { apis, features, store, ownStoreOf, clock, log, random }: RegistriesDeps,
): Registries {
  const { storage } = config;
  const findLease = async (name: string): Promise<Lease | undefined> => {
    if (!apis.kinds.includes(leaseKind)) return undefined;
    const leases = registries.of(leaseKind).objects;
    return await leases.get(leases.key("kube-system", name));
  };
  const findNamespace = (name: string): Namespace | undefined => {
    const namespaces = registries.of(namespaceKind);
    return namespaces.cacheInUse?.get(namespaces.objects.key(undefined, name))?.object;
  };
  const registries: Registries = new Registries(schemeOf(apis.kinds, features), {
    store,
    ownStoreOf,
    prefix: storage.prefix,
    mediaType: storage.mediaType,
    names: storage.names,
    clock,
    random,
    log: log.child("registry"),
    isUncached: uncachedKinds(storage.uncached),
    eventTtlSeconds: Math.ceil(storage.eventTtlMs / 1000),
    deleteCollectionWorkers: config.deleteCollectionWorkers,
    garbageCollector: config.garbageCollector || includesController(config.embeddedControllers, "garbage-collector"),
    features,
    bindingLabels: features.has("PodTopologyLabelsAdmission"),
    validatePolicy: combinePolicies(
      config.admission.allowPrivileged ? undefined : forbidPrivileged,
      features.has("DRAAdminAccess") ? requireAdminLabel(findNamespace) : undefined,
    ),
    unenforcedWarning: unenforcedWarnings(config, explainUncontrolled({ ...config, findLease, clock })),
  });
  return registries;
}
