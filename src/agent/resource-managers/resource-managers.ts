/** The managers of CPUs, memory and topology together: what a pod gets when it is admitted, and its containers. */
import { join } from "node:path";
import type { Container } from "../../api/core/container/schema.ts";
import type { ResourceHealth, ResourceStatus } from "../../api/core/container/status.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import { podUid } from "../pods/pod-fields.ts";
import { getPodQosClass } from "../pods/resources/qos.ts";
import { parseMillis, parseUnits } from "../pods/resources/quantities.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { ClaimManager } from "./claims/claim-manager.ts";
import type { ResourceManagersConfig } from "./config.ts";
import { CpuManager, type RunningPod } from "./cpu/cpu-manager.ts";
import { parseCpuPolicyOptions, validateCpuPolicyOptions } from "./cpu/cpu-policy-options.ts";
import { CpuSet } from "./cpu/cpu-set.ts";
import { openCpuState } from "./cpu/cpu-state.ts";
import { CpuTopology } from "./cpu/cpu-topology.ts";
import { StaticCpuPolicy } from "./cpu/static-cpu-policy.ts";
import { DeviceManager, type DeviceManagerOptions } from "./devices/device-manager.ts";
import type { ContainerAllocateResponse } from "./devices/messages.ts";
import { MemoryManager } from "./memory/memory-manager.ts";
import { openMemoryState } from "./memory/memory-state.ts";
import { parseReservedMemory } from "./memory/reserved-memory.ts";
import { StaticMemoryPolicy } from "./memory/static-memory-policy.ts";
import { createResourceMetrics, type ResourceMetrics } from "./resource-metrics.ts";
import type { MachineTopology } from "./topology/machine-topology.ts";
import { TopologyManager, toRejection } from "./topology/topology-manager.ts";
import { parseTopologyOptions } from "./topology/topology-options.ts";

export interface ResourceManagersOptions {
  readonly config: ResourceManagersConfig;
  /** Directory of the state files. */
  readonly rootDir: string;
  readonly machine: MachineTopology;
  /** What the node's allocatable does not include of its capacity: `cpu`, `memory`, `hugepages-2Mi`. */
  readonly reservation: Readonly<Record<string, string>>;
  readonly runtime: Pick<Runtime, "updateContainerResources">;
  /** Undefined until all sources of pods have been read: nothing is released before. */
  readonly activePods: () => readonly RunningPod[] | undefined;
  /** The pods of all workers, also before all sources have been read. */
  readonly runningPods: () => readonly RunningPod[];
  readonly onDevicesChange: DeviceManagerOptions["onChange"];
  /** Undefined: pods have no claims. */
  readonly claims?: ClaimManager | undefined;
  readonly registry: MetricRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the runtime sets for a container. */
export interface ContainerAssignment {
  /** Empty: not limited; likewise below. */
  readonly cpusetCpus: string;
  readonly cpusetMems: string;
  /** Whether its CPU time is not limited: it has CPUs of its own. */
  readonly isWithoutQuota: boolean;
  /** Names of the devices of its claims. */
  readonly cdiDevices: readonly string[];
  /** What device plugins set for its devices. */
  readonly devices: readonly ContainerAllocateResponse[];
}

export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

/** Kubernetes' period. */
const CLAIMS_PERIOD_MS = 60_000;
const CPU_FILE = "cpu_manager_state";
const MEMORY_FILE = "memory_manager_state";
/** Contains the sockets of device plugins. */
export const DEVICE_DIRECTORY = "device-plugins";

export class ResourceManagers {
  readonly #options: ResourceManagersOptions;
  readonly #topology: TopologyManager;
  /** Undefined with policy `none`. */
  readonly cpu: CpuManager | undefined;
  /** Undefined with policy `None`. */
  readonly memory: MemoryManager | undefined;
  readonly devices: DeviceManager;

  private constructor(
    options: ResourceManagersOptions,
    topology: TopologyManager,
    devices: DeviceManager,
    cpu: CpuManager | undefined,
    memory: MemoryManager | undefined,
  ) {
    this.#options = options;
    this.#topology = topology;
    this.devices = devices;
    this.cpu = cpu;
    this.memory = memory;
  }

  /**
   * Rejects with a message for the operator when the configuration does not fit the machine, or a state file does not
   * fit both.
   */
  static async open(options: ResourceManagersOptions): Promise<ResourceManagers> {
    const { config, machine, registry, clock } = options;
    const metrics = createResourceMetrics(registry);
    const topology = new TopologyManager({
      policy: config.topology.policy,
      scope: config.topology.scope,
      options: parseTopologyOptions(config.topology.options, config.topology.gates),
      numa: {
        nodes: machine.numaNodes.map(({ id }) => id),
        distances: new Map(machine.numaNodes.map(({ id, distances }) => [id, distances])),
      },
      metrics: metrics.topology,
      clock,
    });
    const devices = await DeviceManager.open(
      {
        ...options,
        directory: join(options.rootDir, DEVICE_DIRECTORY),
        numaNodes: machine.numaNodes.map(({ id }) => id),
        onChange: options.onDevicesChange,
      },
      topology,
    );
    const cpu = await openCpuManager(options, topology, metrics);
    const memory = await openMemoryManager(options, topology, metrics);
    for (const provider of [devices, cpu, memory]) if (provider !== undefined) topology.addProvider(provider);
    return new ResourceManagers(options, topology, devices, cpu, memory);
  }

  /** Allocates what the pod's containers request. Why the node rejects the pod; undefined when it does not. */
  async admit(pod: Pod): Promise<Rejection | undefined> {
    try {
      await this.#topology.admit(pod);
      return undefined;
    } catch (error) {
      const rejection = toRejection(error);
      this.#options.log.info("Cannot allocate the resources of a pod", { pod: podUid(pod), ...rejection });
      return rejection;
    }
  }

  /** The pod is not active any more: what it has is free. */
  release(uid: string): void {
    this.#topology.remove(uid);
    this.cpu?.removeStale();
    this.memory?.removeStale();
  }

  /** Undefined: pods have no claims. */
  get claims(): ClaimManager | undefined {
    return this.#options.claims;
  }

  /** The health of the devices that each container has from device plugins. */
  listDeviceHealth(pod: Pod, container: string): readonly ResourceStatus[] {
    const byResource = new Map<string, ResourceHealth[]>();
    for (const { resource, devices } of this.devices.listEntries(podUid(pod), container)) {
      const ids = new Set([...devices.values()].flat());
      const known = byResource.get(resource) ?? [];
      known.push(...[...ids].map((id) => ({ resourceID: id, health: this.devices.getHealth(resource, id) })));
      byResource.set(resource, known);
    }
    return [...byResource].map(([name, resources]) => ({ name, resources }));
  }

  /** Devices that containers have are allocatable, also while their plugin is not connected. */
  withAllocatedDevices(node: Node): Node {
    const counts = Object.entries(this.devices.countAllocated());
    if (counts.length === 0) return node;
    const { allocatable = {} } = node.status ?? {};
    const larger = counts.filter(([name, count]) => name in allocatable && parseUnits(allocatable[name]) < count);
    const raised = Object.fromEntries(larger.map(([name, count]) => [name, String(count)]));
    return { ...node, status: { ...node.status, allocatable: { ...allocatable, ...raised } } };
  }

  /** Why the pod can never be resized in place; undefined when it can. */
  findResizeProblem(pod: Pod): Rejection | undefined {
    const { cpu } = this.#options.config;
    if (getPodQosClass(pod) !== "Guaranteed" || cpu.resizesExclusive) return undefined;
    const manager = this.cpu !== undefined ? "CPU Manager" : this.memory !== undefined ? "Memory Manager" : undefined;
    if (manager === undefined) return undefined;
    const message = `Resize is infeasible for Guaranteed Pods alongside ${manager} static policy`;
    return { reason: "Infeasible", message };
  }

  /** Rejects when the devices of the container cannot be prepared. */
  async getAssignment(pod: Pod, container: Container): Promise<ContainerAssignment> {
    const uid = podUid(pod);
    const nodes = (this.memory?.getBlocks(uid, container.name) ?? []).flatMap(({ numaAffinity }) => numaAffinity);
    return {
      cpusetCpus: this.cpu?.getCpus(uid, container.name).toString() ?? "",
      cpusetMems: CpuSet.from(nodes).toString(),
      isWithoutQuota: this.#isWithoutQuota(uid, container.name),
      cdiDevices: this.#options.claims?.listCdiDevices(pod, container) ?? [],
      devices: await this.devices.prepareContainer(pod, container),
    };
  }

  /** Whether a container of the pod has CPUs of its own, so that the pod's cgroup must not limit them. */
  isPodWithoutQuota(pod: Pod): boolean {
    const { containers = [], initContainers = [] } = pod.spec ?? {};
    return [...initContainers, ...containers].some(({ name }) => this.#isWithoutQuota(podUid(pod), name));
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#reconcileCpus(signal), this.#reconcileClaims(signal)]);
  }

  async #reconcileClaims(signal: AbortSignal): Promise<void> {
    const { claims, clock, log, activePods } = this.#options;
    while (claims !== undefined && !signal.aborted) {
      const active = activePods()?.map(({ pod }) => podUid(pod));
      await (active && claims.reconcile(new Set(active), signal))?.catch((error: unknown) => {
        if (!signal.aborted) log.warn("Failed to release the claims of pods that are gone", { error: String(error) });
      });
      await clock.sleep(CLAIMS_PERIOD_MS, signal).catch(() => undefined);
    }
  }

  async #reconcileCpus(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#options;
    if (this.cpu === undefined) return;
    // Kubernetes reconciles at least every second.
    const periodMs = Math.max(1_000, config.cpu.reconcileMs);
    while (!signal.aborted) {
      await this.cpu.reconcile(signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn("Failed to reconcile the CPUs of containers", { error: String(error) });
      });
      await clock.sleep(periodMs, signal).catch(() => undefined);
    }
  }

  #isWithoutQuota(uid: string, container: string): boolean {
    return this.#options.config.cpu.quotaOffForExclusive && this.cpu?.getExclusiveCpus(uid, container) !== undefined;
  }
}

async function openCpuManager(
  { config, rootDir, machine, reservation, runtime, activePods, log }: ResourceManagersOptions,
  affinities: TopologyManager,
  metrics: ResourceMetrics,
): Promise<CpuManager | undefined> {
  const { policy: name, gates, reservedCpus } = config.cpu;
  const path = join(rootDir, CPU_FILE);
  // The file is written for each policy, so that a change of the policy is noticed.
  if (name === "none") return void (await openCpuState(path, name));
  const topology = new CpuTopology(machine.cpus);
  const options = parseCpuPolicyOptions(config.cpu.options, gates);
  validateCpuPolicyOptions(options, topology, affinities.policy);
  const reserved = CpuSet.parse(reservedCpus);
  const reservedMillis = parseMillis(reservation.cpu);
  if (reservedMillis === 0) {
    const why = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
    throw new Error(`[cpumanager] ${why}`);
  }
  const state = await openCpuState(path, name);
  const policy = new StaticCpuPolicy({
    topology,
    options,
    reservedCount: Math.ceil(reservedMillis / 1000),
    reservedCpus: reserved,
    affinities,
    state,
    metrics: metrics.cpu,
  });
  await state.flush();
  return new CpuManager({ policy, state, runtime, activePods, log });
}

async function openMemoryManager(
  { config, rootDir, machine, reservation, activePods, log }: ResourceManagersOptions,
  affinities: TopologyManager,
  metrics: ResourceMetrics,
): Promise<MemoryManager | undefined> {
  const { policy: name, reserved: reservations } = config.memory;
  const path = join(rootDir, MEMORY_FILE);
  if (name === "None") return void (await openMemoryState(path, name));
  const nodes = machine.numaNodes;
  const reserved = parseReservedMemory(
    reservations,
    nodes.map(({ id }) => id),
    reservation,
  );
  const state = await openMemoryState(path, name);
  const policy = new StaticMemoryPolicy({ nodes, reserved, affinities, state, metrics: metrics.memory });
  await state.flush();
  return new MemoryManager({ policy, state, activePods: () => activePods()?.map(({ pod }) => pod), log });
}
