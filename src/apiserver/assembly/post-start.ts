/** What the server runs after its listener is open: first the parts that readiness depends on, then the others. */
import { eventKind } from "../../api/core/event/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { MASTERS, type UserInfo } from "../../auth/user.ts";
import { createClient } from "../../client/api-client.ts";
import { expandControllerNames, includesController } from "../../controllers/controller-manager.ts";
import type { Handler } from "../../http/message.ts";
import { EventBudget } from "../../registry/events/event-budget.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { readHostAddress } from "../../std/net/host-addresses.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import { feedNodeGraph } from "../authorization/node-graph-feed.ts";
import type { ApiServerConfig } from "../config/config.ts";
import { readFlagFile } from "../config/flag-file.ts";
import { bootstrapCluster } from "../control-plane/bootstrap-objects.ts";
import { startControlPlaneControllers } from "../control-plane/control-plane-controllers.ts";
import type { EndpointReconcilerOptions } from "../control-plane/endpoint-reconciler.ts";
import { apiServiceNames, SECURE_PORT, startServiceAllocation } from "../control-plane/kubernetes-service.ts";
import { ensureNodeBootstrap } from "../control-plane/node-bootstrap.ts";
import { startDefinitionController } from "../custom-resources/definition-controller.ts";
import { registerLocalApiServices } from "../discovery/local-api-services.ts";
import { isUnspecifiedAddress } from "../serving/secure-serving.ts";
import { servingCa } from "../serving/serving-ca.ts";
import { isEmbeddedStore } from "../workers/thread-link.ts";
import type { AccessControl } from "./access-control.ts";
import { runEmbeddedControllers } from "./embedded-controllers.ts";
import type { ServerBase } from "./server-base.ts";

export interface PostStartOptions {
  /** The host and port that clients connect to. */
  readonly address: () => string;
  /** Handles the requests of components in this process. */
  readonly handler: Handler;
  readonly stop: () => void;
}

/** Resolves when the server is ready. Rejects with one sentence for an operator. */
export async function runPostStartHooks(
  base: ServerBase,
  accessControl: AccessControl,
  options: PostStartOptions,
): Promise<void> {
  const { config, clock, resources } = base;
  const stopped: Promise<unknown>[] = [];
  resources.defer(async () => {
    options.stop();
    await Promise.all(stopped);
  });
  const failure = `Cannot use the store ${config.storage.urls.join(",")}: it does not answer`;
  const started = startRequiredControllers(base, accessControl, options.address, stopped);
  await withTimeout(clock, config.storage.initializationTimeoutMs, started, failure);
  const { registries, log, stopping } = base;
  const isMain = base.threads?.isMain ?? true;
  if (isMain) {
    const events = registries.of(eventKind).objects;
    resources.use(
      new EventBudget({ feed: registries.feedOf(eventKind), objects: events, clock, log: log.child("events") }),
    );
  }
  if (accessControl.nodeGraph !== undefined)
    stopped.push(feedNodeGraph(registries, accessControl.nodeGraph, clock, log, stopping));
  if (isMain) await startEmbeddedControllers(base, accessControl, options);
}

/** Loads RBAC policy and custom resource definitions and creates the control plane's objects. */
async function startRequiredControllers(
  base: ServerBase,
  accessControl: AccessControl,
  address: () => string,
  stopped: Promise<unknown>[],
): Promise<void> {
  const { config, clock, log, store, registries, customResources, readiness, metrics, stopping } = base;
  const { clientAuthorities } = accessControl.authenticators;
  const isMain = base.threads?.isMain ?? true;
  if (isMain) await bootstrapCluster(registries, stopping);
  await accessControl.policy.ready();
  readiness.markDone("bootstrap");
  const definitions = startDefinitionController({
    registries,
    customResources,
    groupAliases: config.groupAliases,
    clock,
    log: log.child("custom-resources"),
    signal: stopping,
  });
  stopped.push(definitions.ended);
  await definitions.ready();
  readiness.markDone("definitions");
  const serviceNames = apiServiceNames(config.groupAliases);
  const settings = { ...config.services, securePort: config.securePort, serviceNames };
  const service = await startServiceAllocation(settings, {
    registries,
    log: log.child("services"),
    metrics: metrics.registry,
    isMain,
    signal: stopping,
  });
  stopped.push(service.repaired);
  const own = await startControlPlaneControllers({
    registries,
    serviceAllocation: service,
    isMain,
    endpoints: await endpointReconcilerOptions(config),
    clientAuthorities,
    flowController: base.flowControl?.controller,
    hasIdentity: base.features.has("APIServerIdentity"),
    clock,
    log: log.child("control-plane"),
    signal: stopping,
  });
  stopped.push(own.ended);
  readiness.markDone("services");
  if (isMain) await registerLocalApiServices(registries, config.groupAliases, stopping);
  await new Promise<void>((resolve) => {
    stopped.push(base.aggregator.run(resolve));
    stopping.addEventListener("abort", () => resolve(), { once: true });
  });
  await base.peers?.start(address, stopped);
  readiness.markDone("apis");
  if (base.features.has("WatchCacheInitializationPostStartHook")) {
    const cached = base.apis.kinds.filter((kind) => isPersisted(kind) && !registries.of(kind).isUncached);
    await Promise.all(cached.map((kind) => registries.of(kind).startedCache()));
    readiness.markDone("caches");
  }
  metrics.startStorageMetrics(registries, store);
}

async function startEmbeddedControllers(
  base: ServerBase,
  { authenticators }: AccessControl,
  options: PostStartOptions,
): Promise<void> {
  const { config, clock, log, random, apis, registries, metrics, stopping, resources } = base;
  const clusterCa = config.clusterCa ?? (await servingCa(config.serving, authenticators.clientAuthorities.clientCa()));
  if (includesController(config.embeddedControllers, "csrapproving")) {
    const { certificateAuthorityFile: file } = config.agents;
    const agentCa = file === undefined ? undefined : await readFlagFile("--svclet-certificate-authority", file);
    const info =
      clusterCa === undefined
        ? undefined
        : { server: `https://${options.address()}`, ca: clusterCa, agentCa, agentFlags: config.agentFlags };
    await ensureNodeBootstrap(registries, info, stopping);
  }
  if (includesController(config.embeddedControllers, "local-path-provisioner")) {
    const { ensureLocalPathStorage } = await import("../control-plane/local-path-storage.ts");
    await ensureLocalPathStorage(registries, { storageClass: config.localPathClass === true }, stopping);
  }
  const { loopbackToken } = authenticators;
  const run = (registry: MetricRegistry): Promise<AsyncDisposable> =>
    runEmbeddedControllers(config.embeddedControllers, {
      handler: options.handler,
      loopbackToken,
      clock,
      random,
      log,
      clusterCa,
      signing: config.signing,
      signLegacyToken: authenticators.serviceAccounts.signLegacy,
      kinds: apis.kinds,
      registry,
      queueMetrics: metrics.queues,
      options: config.controllerOptions ?? {},
      features: base.features,
    });
  const names = expandControllerNames(config.embeddedControllers);
  if (names.length === 0 || isEmbeddedStore(config.storage.urls)) {
    resources.use(await run(metrics.registry));
    return;
  }
  // Other servers of the store may have embedded controllers too.
  const headers = { authorization: `Bearer ${loopbackToken(SERVER_USER)}` };
  const client = createClient({ transport: options.handler, headers, userAgent: SERVER_USER.name });
  const { runElectedControllers } = await import("./elected-controllers.ts");
  const { registry } = metrics;
  resources.use(runElectedControllers({ client, clock, random, log: log.child("controllers"), registry, run }));
}

const SERVER_USER: UserInfo = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };

/** Undefined for a loopback address, which other hosts cannot use. */
async function endpointReconcilerOptions({
  bindAddress,
  securePort,
  services,
  groupAliases,
}: ApiServerConfig): Promise<EndpointReconcilerOptions | undefined> {
  const { endpointReconciler: type, advertiseAddress } = services;
  const isSpecific = !isUnspecifiedAddress(bindAddress) && !isLoopback(bindAddress);
  const address = advertiseAddress ?? (isSpecific ? bindAddress : await readHostAddress());
  if (isLoopback(address)) return undefined;
  const port = securePort === 0 ? SECURE_PORT : securePort;
  return { type, address, port, serviceNames: apiServiceNames(groupAliases) };
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}
