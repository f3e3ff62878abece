/**
 * The service of the API server itself, `default/kubernetes`, with its other name `default/svc` where Kubernetes' names
 * are off, and the allocation of addresses and node ports of all services.
 */
import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { GroupAliases } from "../../api/group-aliases.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { ipAddressKind } from "../../api/networking/ip-address/kind.ts";
import { serviceCIDRKind } from "../../api/networking/service-cidr/kind.ts";
import type { ServiceCIDR } from "../../api/networking/service-cidr/schema.ts";
import { StatusError } from "../../api/status.ts";
import { create } from "../../registry/create.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import { AddressBitmaps } from "../../registry/service-allocation/address-bitmaps.ts";
import { type ClusterIpAllocator, ServiceAddresses, usableRange } from "../../registry/service-allocation/addresses.ts";
import { ServiceAllocator } from "../../registry/service-allocation/allocator.ts";
import { DualWriteAddresses } from "../../registry/service-allocation/dual-write.ts";
import type { ClusterFamilies } from "../../registry/service-allocation/families.ts";
import { NodePorts } from "../../registry/service-allocation/node-ports.ts";
import { type RepairResult, repairAddresses } from "../../registry/service-allocation/repair.ts";
import { type LeakedBits, repairBitmap } from "../../registry/service-allocation/repair-bitmaps.ts";
import { update } from "../../registry/update.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { type Logger, silentLogger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { type Cidr, formatCidr, formatIp, type IpFamily, parseCidr } from "../../std/net/ip.ts";
import { type Revision, StoreError } from "../../storage/store.ts";
import type { ServicesConfig } from "../config/config.ts";
import { AllocationMetrics } from "../metrics/allocation-metrics.ts";
import { OWN_FIELD_MANAGER, systemScope } from "./ensure.ts";

/** The name of the API's service, and of the ServiceCIDR that holds --service-cluster-ip-range. */
export const KUBERNETES_SERVICE = "kubernetes";
const API_SERVICE_NAMESPACE = "default";
/** The project's own name of the API's service, with the same endpoints. */
const SVC_SERVICE = "svc";

/** The names of the API's services: one, unless Kubernetes' names of API groups are off. */
export function apiServiceNames(groupAliases: GroupAliases): readonly string[] {
  return groupAliases.served ? [KUBERNETES_SERVICE] : [KUBERNETES_SERVICE, SVC_SERVICE];
}

/** Whether the server owns the service. A service `svc` that a user created does not have the labels. */
export function isApiService({ metadata }: Service): boolean {
  const { component, provider } = metadata?.labels ?? {};
  return metadata?.name === KUBERNETES_SERVICE || (component === "apiserver" && provider === metadata?.name);
}

/** The port in endpoints when --secure-port is 0. */
export const SECURE_PORT = 6443;

export interface ApiServicesConfig
  extends Pick<ServicesConfig, "clusterIpRanges" | "nodePorts" | "kubernetesServiceNodePort"> {
  /** 0: chosen by the operating system. */
  readonly securePort: number;
  readonly serviceNames: readonly string[];
}

export interface ServiceAllocation {
  /** Resolves after the first repair of addresses that a crash left inconsistent. Never rejects. */
  readonly repaired: Promise<void>;
  /** The store keys of the ServiceCIDR and the services. */
  readonly keys: readonly string[];
  /** Recreates the ServiceCIDR and the API's services when they are missing. */
  reconcile(): Promise<void>;
  /** Releases addresses that no service uses and reserves those that services use. */
  repair(): Promise<void>;
}

const NOTHING_TO_MAINTAIN: ServiceAllocation = {
  repaired: Promise.resolve(),
  keys: [],
  reconcile: async () => {},
  repair: async () => {},
};

export interface ServiceAllocationDeps {
  readonly registries: Registries;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** Whether this thread of the process maintains the API's services and repairs addresses; true when absent. */
  readonly isMain?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Resolves when services can be written; `repaired` resolves after the repair in the background. Rejects with one
 * sentence for an operator.
 */
export async function startServiceAllocation(
  config: ApiServicesConfig,
  { registries, log, metrics: registry, isMain = true, signal }: ServiceAllocationDeps,
): Promise<ServiceAllocation> {
  const ranges = parseServiceRanges(config.clusterIpRanges);
  const [services, cidrs, objects] = [
    registries.of(serviceKind),
    registries.of(serviceCIDRKind),
    registries.of(ipAddressKind),
  ];
  const { random, store, clock } = registries.deps;
  const usesObjects = registries.features.has("MultiCIDRServiceAllocator");
  const usesBitmaps = !usesObjects || !registries.features.has("DisableAllocatorDualWrite");
  const bitmaps = usesBitmaps ? new AddressBitmaps(ranges, registries.deps, random) : undefined;
  const objectAddresses = new ServiceAddresses(objects, cidrs, random);
  const cidrsInUse = usesObjects ? () => objectAddresses.cidrs() : () => ranges;
  const metrics = new AllocationMetrics({ registry, clock, services, cidrs: cidrsInUse });
  const ports = new NodePorts(services, config.nodePorts, random, metrics);
  const families = ranges.map(({ family }) => family) as readonly IpFamily[] as ClusterFamilies;
  services.allocator = new ServiceAllocator({
    families,
    addresses: metrics.measure(combineAllocators(objectAddresses, bitmaps, usesObjects)),
    ports,
    endpoints: registries.of(endpointsKind),
    log,
  });
  if (!isMain) return NOTHING_TO_MAINTAIN;
  metrics.showUsage(ports);
  const scope = systemScope("", signal);
  const startRevision = store.current();
  let reportedCidrs = "";
  /** Logs a difference once, until the ServiceCIDR changes. */
  const onDifferentCidr = (inUse: string, wanted: string): void => {
    if (inUse === reportedCidrs) return;
    reportedCidrs = inUse;
    log.warn("The ServiceCIDR differs from --service-cluster-ip-range and is used unchanged", { inUse, wanted });
  };
  const reconcileApiServices = async (): Promise<void> => {
    if (usesObjects)
      await ensureServiceCidr(cidrs, ranges.map(formatCidr), { ...scope, group: "networking.k8s.io" }, onDifferentCidr);
    await ensureApiService(services, KUBERNETES_SERVICE, config, firstAddress(ranges[0]), signal);
    for (const name of config.serviceNames.filter((each) => each !== KUBERNETES_SERVICE))
      await ensureApiService(services, name, { ...config, kubernetesServiceNodePort: 0 }, undefined, signal);
  };
  const leaked = ranges.map((): LeakedBits => new Map());
  // Beside the objects the bitmaps are a copy, and need not have the addresses of all ServiceCIDRs.
  const bitmapLog = usesObjects ? silentLogger : log;
  const repairBitmaps = async (): Promise<void> => {
    for (const [i, range] of (bitmaps?.ranges ?? []).entries())
      report(await repairBitmap(services, range, leaked[i] ?? new Map(), scope, bitmapLog), bitmapLog);
    report(await ports.repair(scope, log), log, "node ports");
  };
  const repair = async (revision: Revision): Promise<void> => {
    if (usesObjects) report(await repairAddresses(services, objects, objectAddresses, scope, revision), log);
    await repairBitmaps();
  };
  try {
    // Without their bitmaps no addresses are allocated.
    await repairBitmaps();
    await reconcileApiServices();
    if (!config.serviceNames.includes(SVC_SERVICE)) await removeSvcService(registries, signal);
  } catch (error) {
    // The server works without this service, and an operator can repair it, or delete objects of a full store, only
    // through a running server.
    const isFull = error instanceof StoreError && error.code === "no-space";
    if (!(error instanceof StatusError) && !isFull) throw error;
    log.error("Cannot reconcile the kubernetes service", error);
  }
  const repaired = (usesObjects ? repair(startRevision) : Promise.resolve()).catch((error: unknown) => {
    if (!signal.aborted) log.error("Cannot repair service IP addresses", error);
  });
  const keys = config.serviceNames.map((name) => services.objects.key(API_SERVICE_NAMESPACE, name));
  return {
    repaired,
    keys: usesObjects ? [...keys, cidrs.objects.key(undefined, KUBERNETES_SERVICE)] : keys,
    reconcile: reconcileApiServices,
    repair: () => repair(store.current()),
  };
}

/** The objects, the bitmaps, or both: with `usesObjects`, the bitmaps are a copy if there are any. */
function combineAllocators(
  objects: ServiceAddresses,
  bitmaps: AddressBitmaps | undefined,
  usesObjects: boolean,
): ClusterIpAllocator {
  if (bitmaps === undefined) return objects;
  return usesObjects ? new DualWriteAddresses(objects, bitmaps) : bitmaps;
}

function report({ released, allocated }: RepairResult, log: Logger, what = "service IP addresses"): void {
  if (released + allocated > 0) log.info(`Repaired ${what}`, { released, allocated });
}

/** Deletes the service `svc` of an earlier start with its endpoints, unless a user created it. */
async function removeSvcService(registries: Registries, signal: AbortSignal): Promise<void> {
  const scope = systemScope(API_SERVICE_NAMESPACE, signal);
  const services = registries.of(serviceKind);
  const found = await services.objects.get(services.objects.key(API_SERVICE_NAMESPACE, SVC_SERVICE));
  if (found === undefined || !isApiService(found)) return;
  // The service is last, so that the next start continues after a crash.
  for (const kind of [endpointSliceKind, endpointsKind, serviceKind] as readonly Kind[])
    await deleteExisting(registries.of(kind), scope, SVC_SERVICE);
}

async function deleteExisting<T extends ApiObject>(registry: Registry<T>, scope: Scope, name: string): Promise<void> {
  try {
    await remove(registry, scope, name);
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.reason !== "NotFound") throw error;
  }
}

function parseServiceRanges(ranges: readonly string[]): readonly Cidr[] {
  return ranges.map((range) => {
    const block = parseCidr(range);
    if (block === undefined) throw new Error(`Cannot use --service-cluster-ip-range=${range}: it is not a CIDR`);
    const { first, last } = usableRange(block);
    if (first > last) throw new Error(`Cannot use --service-cluster-ip-range=${range}: it has no usable address`);
    return block;
  });
}

function firstAddress(block: Cidr | undefined): string {
  if (block === undefined) throw new Error("Cannot use --service-cluster-ip-range: it has no range");
  return formatIp({ family: block.family, value: usableRange(block).first });
}

/** Creates the ServiceCIDR, or adds the range of a second IP family. Other changes of the flag are only reported. */
async function ensureServiceCidr(
  registry: Registry<ServiceCIDR>,
  wanted: readonly string[],
  scope: Scope,
  onDifference: (inUse: string, wanted: string) => void,
): Promise<void> {
  const found = await registry.objects.get(registry.objects.key(undefined, KUBERNETES_SERVICE));
  const cidrs = found?.spec?.cidrs ?? [];
  if (found === undefined)
    await createMissing(registry, scope, { metadata: { name: KUBERNETES_SERVICE }, spec: { cidrs: wanted } });
  else if (cidrs.length === 1 && wanted.length === 2 && cidrs[0] === wanted[0]) {
    await update(registry, scope, KUBERNETES_SERVICE, { ...found, spec: { cidrs: wanted } }, OWN_FIELD_MANAGER);
  } else if (!deepEqual(cidrs, wanted)) {
    onDifference(cidrs.join(","), wanted.join(","));
  }
  // The ServiceCIDR controller handles the deletion.
  if (found?.metadata?.deletionTimestamp !== undefined) return;
  if (found?.status?.conditions?.some(({ type }) => type === "Ready") === true) return;
  const ready = {
    type: "Ready",
    status: "True",
    reason: "",
    message: "Kubernetes default Service CIDR is ready",
    lastTransitionTime: registry.timestamp(),
  };
  await guaranteedUpdate({ registry, scope, name: KUBERNETES_SERVICE, options: {} }, (previous) => ({
    ...previous,
    status: { conditions: [ready] },
  }));
}

async function createMissing<T extends ApiObject>(registry: Registry<T>, scope: Scope, object: T): Promise<void> {
  try {
    await create(registry, scope, object, OWN_FIELD_MANAGER);
  } catch (error) {
    // Another server over the same store created it first.
    if (!(error instanceof StatusError) || error.status.reason !== "AlreadyExists") throw error;
  }
}

async function ensureApiService(
  services: Registry<Service>,
  name: string,
  { kubernetesServiceNodePort, securePort }: ApiServicesConfig,
  clusterIP: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const scope = systemScope(API_SERVICE_NAMESPACE, signal);
  const targetPort = securePort === 0 ? SECURE_PORT : securePort;
  const nodePort = kubernetesServiceNodePort === 0 ? {} : { nodePort: kubernetesServiceNodePort };
  const ports = [{ name: "https", protocol: "TCP", port: 443, targetPort, ...nodePort }] as const;
  const type = kubernetesServiceNodePort === 0 ? "ClusterIP" : "NodePort";
  const found = await services.objects.get(services.objects.key(API_SERVICE_NAMESPACE, name));
  if (found === undefined) {
    const labels = { component: "apiserver", provider: name };
    const spec = { type, clusterIP, ports, ipFamilyPolicy: "SingleStack", sessionAffinity: "None" } as const;
    await createMissing(services, scope, { metadata: { name, namespace: API_SERVICE_NAMESPACE, labels }, spec });
  } else if (isApiService(found) && (found.spec?.type !== type || !deepEqual(found.spec.ports, ports))) {
    await update(services, scope, name, { ...found, spec: { ...found.spec, type, ports } }, OWN_FIELD_MANAGER);
  }
}
