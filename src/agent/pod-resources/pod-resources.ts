/** Serves what the containers of the node have of CPUs, memory and devices, for monitoring agents on the node. */
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { CounterFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { TokenBucket } from "../../std/time/token-bucket.ts";
import { StatusCodeError, serveUnix } from "../plugins/unix-server.ts";
import { appContainers, initContainers, isSidecar, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { CpuSet } from "../resource-managers/cpu/cpu-set.ts";
import type { DeviceManager } from "../resource-managers/devices/device-manager.ts";
import { NO_NODE } from "../resource-managers/devices/device-resource.ts";
import type { MemoryBlock } from "../resource-managers/memory/memory-state.ts";
import type { ResourceManagers } from "../resource-managers/resource-managers.ts";
import {
  type AllocatableResources,
  type ContainerDevices,
  type ContainerMemory,
  type ContainerResources,
  type DynamicResource,
  type GetPodResourcesRequest,
  type PodResources,
  podResourcesLister,
} from "./messages.ts";

export interface PodResourcesOptions {
  readonly socket: string;
  readonly managers: Pick<ResourceManagers, "cpu" | "memory">;
  readonly devices: DeviceManager;
  /** Pods whose containers may run. */
  readonly pods: () => readonly Pod[];
  /** Devices of resource claims; undefined: the gate is off. */
  readonly claims?: ((pod: Pod, container: Container) => readonly DynamicResource[]) | undefined;
  /** Whether `Get` is served. */
  readonly servesGet: boolean;
  readonly registry: MetricRegistry;
  readonly clock: Clock;
}

const VERSION = "v1";
/** Kubernetes' limits of requests. */
const QPS = 100;
const BURST = 10;

/** Rejects when the socket cannot be bound. */
export async function servePodResources(options: PodResourcesOptions): Promise<AsyncDisposable> {
  const { registry, clock, servesGet } = options;
  const metrics = createMetrics(registry);
  const bucket = new TokenBucket(clock, QPS, BURST);
  const serve =
    <Q, A>(method: keyof typeof metrics.requests, respond: (request: Q) => A) =>
    async (request: never): Promise<A> => {
      if (!bucket.take()) throw new StatusCodeError("RESOURCE_EXHAUSTED", "rejected by rate limit");
      metrics.total.with(VERSION).inc();
      metrics.requests[method].with(VERSION).inc();
      try {
        return respond(request);
      } catch (error) {
        metrics.errors[method].with(VERSION).inc();
        throw error;
      }
    };
  return await serveUnix(options.socket, podResourcesLister, {
    list: serve("list", () => ({ podResources: options.pods().map((pod) => describePod(options, pod)) })),
    getAllocatableResources: serve("get_allocatable", () => describeAllocatable(options)),
    get: serve("get", ({ podName: name = "", podNamespace: namespace = "" }: GetPodResourcesRequest) => {
      if (!servesGet) throw new Error("PodResources API Get method disabled");
      const pod = options.pods().find((each) => podName(each) === name && podNamespace(each) === namespace);
      if (pod === undefined) throw new Error(`pod ${name} in namespace ${namespace} not found`);
      return { podResources: describePod(options, pod) };
    }),
  });
}

function createMetrics(registry: MetricRegistry) {
  const methods = ["list", "get_allocatable", "get"] as const;
  const rpcs = { list: "List", get_allocatable: "GetAllocatableResources", get: "Get" };
  const counter = (name: string, help: string): CounterFamily =>
    registry.counter({
      name: `kubelet_pod_resources_endpoint_${name}`,
      help: `${help} Broken down by server api version.`,
      stability: "ALPHA",
      labels: ["server_api_version"],
    });
  const each = (kind: string, help: (rpc: string) => string): Record<(typeof methods)[number], CounterFamily> => {
    const [list, allocatable, get] = methods.map((name) => counter(`${kind}_${name}`, help(rpcs[name])));
    if (list === undefined || allocatable === undefined || get === undefined) throw new Error("unreachable");
    return { list, get_allocatable: allocatable, get };
  };
  return {
    total: counter("requests_total", "Cumulative number of requests to the PodResource endpoint."),
    requests: each("requests", (rpc) => `Number of requests to the PodResource ${rpc} endpoint.`),
    errors: each("errors", (rpc) => `Number of requests to the PodResource ${rpc} endpoint which returned error.`),
  };
}

function describePod(options: PodResourcesOptions, pod: Pod): PodResources {
  const containers = [...initContainers(pod).filter(isSidecar), ...appContainers(pod)];
  return {
    name: podName(pod),
    namespace: podNamespace(pod),
    containers: containers.map((each) => describeContainer(options, pod, each)),
  };
}

function describeContainer(
  { managers, devices, claims }: PodResourcesOptions,
  pod: Pod,
  container: Container,
): ContainerResources {
  const { name } = container;
  const uid = podUid(pod);
  const entries = devices.listEntries(uid, name);
  const dynamicResources = claims?.(pod, container) ?? [];
  return {
    name,
    devices: entries.flatMap((entry) => describeDevices(entry.resource, entry.devices)),
    cpuIds: toCpuIds(managers.cpu?.getExclusiveCpus(uid, name)),
    memory: (managers.memory?.getBlocks(uid, name) ?? []).map(describeMemory),
    ...(dynamicResources.length === 0 ? {} : { dynamicResources }),
  };
}

function describeAllocatable({ managers, devices }: PodResourcesOptions): AllocatableResources {
  return {
    devices: [...devices.listAllocatable()].flatMap(([resource, groups]) => describeDevices(resource, groups)),
    cpuIds: toCpuIds(managers.cpu?.allocatable),
    memory: (managers.memory?.listAllocatable() ?? []).map(describeMemory),
  };
}

/** One entry for each device, with its nodes. */
function describeDevices(
  resourceName: string,
  groups: ReadonlyMap<number, readonly string[]>,
): readonly ContainerDevices[] {
  const nodes = new Map<string, number[]>();
  for (const [node, ids] of groups) {
    for (const id of ids) nodes.set(id, [...(nodes.get(id) ?? []), ...(node === NO_NODE ? [] : [node])]);
  }
  return [...nodes].map(([id, of]) => ({
    resourceName,
    deviceIds: [id],
    ...(of.length === 0 ? {} : { topology: toTopology(of) }),
  }));
}

function describeMemory({ type, size, numaAffinity }: MemoryBlock): ContainerMemory {
  return { memoryType: type, size: BigInt(size), topology: toTopology(numaAffinity) };
}

function toTopology(nodes: readonly number[]): NonNullable<ContainerDevices["topology"]> {
  return { nodes: nodes.map((node) => ({ id: BigInt(node) })) };
}

function toCpuIds(cpus: CpuSet | undefined): readonly bigint[] {
  return [...(cpus ?? [])].map(BigInt);
}
