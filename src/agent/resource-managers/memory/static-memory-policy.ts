/**
 * Reserves memory and huge pages of NUMA nodes for containers of Guaranteed pods. A node holds either containers with
 * memory of this node only, or containers with memory of the same group of nodes.
 */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { hasPodLevelResources } from "../../../api/core/pod-spec/resources.ts";
import { appContainers, initContainers, isSidecar, podUid } from "../../pods/pod-fields.ts";
import { getPodQosClass } from "../../pods/resources/qos.ts";
import { parseUnits } from "../../pods/resources/quantities.ts";
import { INVALID_STATE_ADVICE } from "../state-file.ts";
import type { NumaNode } from "../topology/machine-topology.ts";
import { isNarrower, iterateMasks, maskOf, type NumaMask, nodesOf } from "../topology/numa-mask.ts";
import type { AffinityStore, ResourceHints, TopologyHint } from "../topology/topology-hint.ts";
import type { MemoryMetrics } from "./memory-metrics.ts";
import type { MachineMemory, MemoryBlock, MemoryState, MemoryTable } from "./memory-state.ts";
import type { ReservedMemory } from "./reserved-memory.ts";

export interface StaticMemoryPolicyOptions {
  readonly nodes: readonly NumaNode[];
  readonly reserved: ReservedMemory;
  readonly affinities: AffinityStore;
  readonly state: MemoryState;
  readonly metrics: MemoryMetrics;
}

/** Bytes by resource. */
type MemoryRequest = ReadonlyMap<string, number>;

interface MemoryHint {
  readonly affinity: NumaMask;
  readonly isPreferred: boolean;
}

export class StaticMemoryPolicy {
  readonly #options: StaticMemoryPolicyOptions;
  /** Memory of init containers, which later containers of the same pod use; by affinity and resource. */
  #reusable: { readonly uid: string; readonly bytes: Map<string, number> } = { uid: "", bytes: new Map() };

  /** Throws Kubernetes' message when the state does not fit the machine. */
  constructor(options: StaticMemoryPolicyOptions) {
    this.#options = options;
    const reserved = [...options.reserved.values()].reduce((sum, each) => sum + (each.memory ?? 0), 0);
    if (reserved <= 0) throw new Error("[memorymanager] you should specify the system reserved memory");
    this.#validateState();
  }

  /** What containers could have if none had any. */
  listAllocatable(): readonly MemoryBlock[] {
    return Object.entries(this.#options.state.shared).flatMap(([node, { memoryMap }]) =>
      Object.entries(memoryMap)
        .filter(([, { allocatable }]) => allocatable > 0)
        .map(([type, { allocatable }]) => ({ numaAffinity: [Number(node)], type, size: allocatable })),
    );
  }

  /** Reserves the memory of a container, or finds it reserved. Throws the reason for which the pod is rejected. */
  allocate(pod: Pod, container: Container): void {
    const { state, metrics } = this.#options;
    if (getPodQosClass(pod) !== "Guaranteed" || hasPodLevelResources(pod.spec)) return;
    metrics.requests.with().inc();
    try {
      const allocated = state.get(podUid(pod), container.name);
      if (allocated !== undefined) this.#updateReusable(pod, container, allocated);
      else this.#allocateNew(pod, container);
    } catch (error) {
      metrics.errors.with().inc();
      throw error;
    }
  }

  remove(uid: string, container: string): void {
    const { state } = this.#options;
    const blocks = state.get(uid, container);
    if (blocks === undefined) return;
    state.delete(uid, container);
    const machine = structuredClone(state.shared);
    for (const { numaAffinity, type, size } of blocks) {
      let rest = size;
      for (const node of numaAffinity) {
        const memory = machine[node];
        if (memory === undefined) continue;
        memory.numberOfAssignments--;
        if (memory.numberOfAssignments === 0) memory.cells = [node];
        const table = memory.memoryMap[type];
        if (table !== undefined) rest -= release(table, rest);
      }
    }
    state.setShared(machine);
  }

  getTopologyHints(pod: Pod, container: Container): ResourceHints {
    if (getPodQosClass(pod) !== "Guaranteed" || hasPodLevelResources(pod.spec)) return {};
    const request = readRequest(container);
    const blocks = this.#options.state.get(podUid(pod), container.name);
    return blocks === undefined
      ? this.#makeHints(this.#options.state.shared, pod, request)
      : hintsOfBlocks(blocks, request);
  }

  getPodTopologyHints(pod: Pod): ResourceHints {
    const { state } = this.#options;
    if (getPodQosClass(pod) !== "Guaranteed" || hasPodLevelResources(pod.spec)) return {};
    const request = readPodRequest(pod);
    for (const { name } of [...initContainers(pod), ...appContainers(pod)]) {
      const blocks = state.get(podUid(pod), name);
      if (blocks !== undefined) return hintsOfBlocks(blocks, request);
    }
    return this.#makeHints(state.shared, pod, request);
  }

  #allocateNew(pod: Pod, container: Container): void {
    const { state } = this.#options;
    const uid = podUid(pod);
    const request = readRequest(container);
    const machine = structuredClone(state.shared);
    const { affinity } = this.#chooseHint(machine, pod, container, request);
    if (violatesGroups(machine, affinity)) {
      throw new Error("[memorymanager] preferred hint violates NUMA node allocation");
    }
    const nodes = nodesOf(affinity);
    const blocks = [...request].map(([type, size]) => ({ numaAffinity: nodes, type, size }));
    for (const { type, size } of blocks) {
      reserve(machine, nodes, type, Math.max(0, size - this.#getReusable(uid, affinity, type)));
    }
    this.#updateReusable(pod, container, blocks);
    state.setShared(machine);
    state.set(uid, container.name, blocks);
    this.#shrinkInitContainers(pod, container, blocks);
  }

  #chooseHint(machine: MachineMemory, pod: Pod, container: Container, request: MemoryRequest): MemoryHint {
    const chosen = this.#options.affinities.getAffinity(podUid(pod), container.name);
    let hint: MemoryHint;
    if (chosen.affinity === undefined) {
      const hints = this.#makeHints(machine, pod, request);
      if (Object.keys(hints).length === 0) {
        const why = "no NUMA nodes with enough memory is available";
        throw new Error(`[memorymanager] failed to get the default NUMA affinity, ${why}`);
      }
      hint = findBestHint(hints.memory ?? []);
      if (!hint.isPreferred && chosen.isPreferred) {
        throw new Error("[memorymanager] failed to find the default preferred hint");
      }
    } else hint = { affinity: chosen.affinity, isPreferred: chosen.isPreferred };
    if (hasFree(machine, hint.affinity, request)) return hint;
    return this.#extendHint(machine, pod, request, hint);
  }

  /** The merged hint of all providers may be a part of the nodes that the container needs. */
  #extendHint(machine: MachineMemory, pod: Pod, request: MemoryRequest, hint: MemoryHint): MemoryHint {
    const hints = (this.#makeHints(machine, pod, request).memory ?? []).filter(
      ({ affinity = 0n }) => (affinity & hint.affinity) === hint.affinity,
    );
    if (hints.length === 0) {
      throw new Error("[memorymanager] failed to find NUMA nodes to extend the current topology hint");
    }
    const extended = findBestHint(hints);
    if (!extended.isPreferred && hint.isPreferred) {
      throw new Error("[memorymanager] failed to find the extended preferred hint");
    }
    return extended;
  }

  #makeHints(machine: MachineMemory, pod: Pod, request: MemoryRequest): ResourceHints {
    const nodes = Object.keys(machine).map(Number);
    let smallest = nodes.length;
    const masks: NumaMask[] = [];
    for (const mask of iterateMasks(nodes)) {
      const members = nodesOf(mask);
      if (!hasEnough(machine, members, request, ({ allocatable }) => allocatable)) continue;
      smallest = Math.min(smallest, members.length);
      if (violatesGroups(machine, mask) || isGrouped(machine, members)) continue;
      const reusable = (type: string): number => this.#getReusable(podUid(pod), mask, type);
      if (hasEnough(machine, members, request, ({ free }) => free, reusable)) masks.push(mask);
    }
    if (masks.length === 0) return {};
    const hints = masks.map((affinity) => ({ affinity, isPreferred: nodesOf(affinity).length === smallest }));
    return Object.fromEntries([...request.keys()].map((resource) => [resource, hints]));
  }

  #getReusable(uid: string, affinity: NumaMask, type: string): number {
    return this.#reusable.uid === uid ? (this.#reusable.bytes.get(`${affinity}/${type}`) ?? 0) : 0;
  }

  #updateReusable(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const uid = podUid(pod);
    if (this.#reusable.uid !== uid) this.#reusable = { uid, bytes: new Map() };
    const isInit = initContainers(pod).some((each) => each.name === container.name && !isSidecar(each));
    for (const { numaAffinity, type, size } of blocks) {
      const affinity = maskOf(numaAffinity);
      const before = this.#getReusable(uid, affinity, type);
      const after = isInit ? Math.max(before, size) : Math.max(0, before - size);
      this.#reusable.bytes.set(`${affinity}/${type}`, after);
    }
  }

  /** The blocks of all containers add up to what the pod has: init containers give what later ones use. */
  #shrinkInitContainers(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const { state } = this.#options;
    const uid = podUid(pod);
    for (const { numaAffinity, type, size } of blocks) {
      let rest = size;
      for (const init of initContainers(pod)) {
        if (init.name === container.name || rest === 0) break;
        const own = state.get(uid, init.name);
        if (isSidecar(init) || own === undefined || own.length === 0) continue;
        const shrunk = own.map((block) => {
          if (block.type !== type || maskOf(block.numaAffinity) !== maskOf(numaAffinity)) return block;
          const used = Math.min(block.size, rest);
          rest -= used;
          return { ...block, size: block.size - used };
        });
        state.set(uid, init.name, shrunk);
      }
    }
  }

  #validateState(): void {
    const { state } = this.#options;
    const machine = structuredClone(state.shared);
    const expected = this.#makeMachine();
    if (Object.keys(machine).length === 0) {
      if (state.assignments.size > 0) {
        throw new Error("[memorymanager] machine state can not be empty when it has memory assignments");
      }
      state.setShared(expected);
      return;
    }
    for (const [uid, containers] of state.assignments) {
      for (const [name, blocks] of containers) {
        for (const block of blocks) applyAssignment(expected, block, `(pod: ${uid}, container: ${name})`);
      }
    }
    const difference = findDifference(machine, expected);
    if (difference !== undefined) {
      const text = "[memorymanager] the expected machine state is different from the real one";
      throw new Error(`${text} (${difference}), ${INVALID_STATE_ADVICE}`);
    }
  }

  #makeMachine(): MachineMemory {
    const { nodes, reserved } = this.#options;
    const machine: MachineMemory = {};
    for (const { id, memoryBytes, hugePages } of nodes) {
      const make = (resource: string, total: number, unusable: number): MemoryTable => {
        const systemReserved = reserved.get(id)?.[resource] ?? 0;
        const allocatable = Math.max(0, total - systemReserved - unusable);
        return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
      };
      const huge = Object.entries(hugePages);
      const hugeTotal = huge.reduce((sum, [, bytes]) => sum + bytes, 0);
      const tables = huge.map(([resource, bytes]) => [resource, make(resource, bytes, 0)] as const);
      const memory = make("memory", memoryBytes, hugeTotal);
      machine[id] = { numberOfAssignments: 0, memoryMap: { ...Object.fromEntries(tables), memory }, cells: [id] };
    }
    return machine;
  }
}

function readRequest({ resources }: Container): MemoryRequest {
  const quantities = { ...resources?.limits, ...resources?.requests };
  const sizes = Object.entries(quantities)
    .filter(([name]) => name === "memory" || name.startsWith("hugepages-"))
    .map(([name, quantity]) => [name, parseUnits(quantity)] as const);
  return new Map(sizes);
}

/** Init containers run one after the other, beside the sidecars before them. */
function readPodRequest(pod: Pod): MemoryRequest {
  const sidecars = new Map<string, number>();
  const starting = new Map<string, number>();
  for (const container of initContainers(pod)) {
    for (const [name, size] of readRequest(container)) {
      const before = sidecars.get(name) ?? 0;
      if (isSidecar(container)) sidecars.set(name, before + size);
      else starting.set(name, Math.max(starting.get(name) ?? 0, before + size));
    }
  }
  const running = new Map<string, number>();
  for (const container of appContainers(pod)) {
    for (const [name, size] of readRequest(container)) running.set(name, (running.get(name) ?? 0) + size);
  }
  const totals = [...running].map(
    ([name, size]) => [name, Math.max(size + (sidecars.get(name) ?? 0), starting.get(name) ?? 0)] as const,
  );
  return new Map(totals);
}

function hasEnough(
  machine: MachineMemory,
  nodes: readonly number[],
  request: MemoryRequest,
  amountOf: (table: MemoryTable) => number,
  extra: (type: string) => number = () => 0,
): boolean {
  return [...request].every(([type, size]) => {
    const tables = nodes.flatMap((node) => machine[node]?.memoryMap[type] ?? []);
    return tables.reduce((sum, table) => sum + amountOf(table), extra(type)) >= size;
  });
}

function hasFree(machine: MachineMemory, affinity: NumaMask, request: MemoryRequest): boolean {
  return hasEnough(machine, nodesOf(affinity), request, ({ free }) => free);
}

/** A single node that is part of a group in use. */
function isGrouped(machine: MachineMemory, nodes: readonly number[]): boolean {
  const [only = -1, ...others] = nodes;
  return others.length === 0 && (machine[only]?.cells.length ?? 0) > 1;
}

/** Several nodes, of which one has containers of its own, or of another group. */
function violatesGroups(machine: MachineMemory, affinity: NumaMask): boolean {
  const nodes = nodesOf(affinity);
  if (nodes.length === 1) return false;
  return nodes.some((node) => {
    const { numberOfAssignments = 0, cells = [] } = machine[node] ?? {};
    return numberOfAssignments > 0 && (cells.length === 1 || maskOf(cells) !== affinity);
  });
}

/** Preferred ones first, then those with the fewest nodes. */
function findBestHint(hints: readonly TopologyHint[]): MemoryHint {
  let best: MemoryHint = { affinity: 0n, isPreferred: false };
  for (const { affinity, isPreferred } of hints) {
    if (affinity === undefined) continue;
    const isBetter =
      best.affinity === 0n ||
      (isPreferred && !best.isPreferred) ||
      (isPreferred === best.isPreferred && isNarrower(affinity, best.affinity));
    if (isBetter) best = { affinity, isPreferred };
  }
  return best;
}

/** The hints of memory that is reserved already. */
function hintsOfBlocks(blocks: readonly MemoryBlock[], request: MemoryRequest): ResourceHints {
  const fits = blocks.length === request.size && blocks.every(({ type, size }) => request.get(type) === size);
  if (!fits) return {};
  const hints = blocks.map(
    ({ type, numaAffinity }) => [type, [{ affinity: maskOf(numaAffinity), isPreferred: true }]] as const,
  );
  return Object.fromEntries(hints);
}

function reserve(machine: MachineMemory, nodes: readonly number[], type: string, size: number): void {
  let rest = size;
  for (const node of nodes) {
    const memory = machine[node];
    if (memory === undefined) continue;
    memory.numberOfAssignments++;
    memory.cells = nodes;
    const table = memory.memoryMap[type];
    if (table === undefined) continue;
    const taken = Math.min(rest, table.free);
    table.reserved += taken;
    table.free -= taken;
    rest -= taken;
  }
}

/** Returns how much was released. */
function release(table: MemoryTable, size: number): number {
  const released = Math.min(table.reserved, size);
  table.reserved -= released;
  table.free += released;
  return released;
}

function applyAssignment(machine: MachineMemory, { numaAffinity, type, size }: MemoryBlock, where: string): void {
  for (const node of numaAffinity) {
    if (machine[node] === undefined) {
      throw new Error(`[memorymanager] ${where} the memory assignment uses the NUMA that does not exist`);
    }
    if (machine[node].memoryMap[type] === undefined) {
      throw new Error(`[memorymanager] ${where} the memory assignment uses memory resource that does not exist`);
    }
  }
  reserve(machine, numaAffinity, type, size);
}

/** Nodes of one group are compared together: containers may have been allocated in another order. */
/** The first difference, in words; undefined when there is none. */
function findDifference(stored: MachineMemory, real: MachineMemory): string | undefined {
  const nodes = Object.keys(stored).map(Number);
  if (nodes.join() !== Object.keys(real).join()) {
    return `NUMA nodes were ${nodes.join()}, are ${Object.keys(real).join()}`;
  }
  for (const node of nodes) {
    const [left, right] = [stored[node], real[node]];
    if (left === undefined || right === undefined) continue;
    const where = `of NUMA node ${node}`;
    const pairs: readonly (readonly [field: string, was: string | number, is: string | number])[] = [
      [`assignments ${where}`, left.numberOfAssignments, right.numberOfAssignments],
      [`group ${where}`, [...left.cells].sort().join(), [...right.cells].sort().join()],
      [`resources ${where}`, Object.keys(left.memoryMap).sort().join(), Object.keys(right.memoryMap).sort().join()],
      ...Object.keys(left.memoryMap).flatMap((resource) => compareResource(stored, real, node, resource)),
    ];
    const found = pairs.find(([, was, is]) => was !== is);
    if (found !== undefined) return `${found[0]}: stored ${found[1]}, real ${found[2]}`;
  }
  return undefined;
}

function compareResource(
  stored: MachineMemory,
  real: MachineMemory,
  node: number,
  resource: string,
): readonly (readonly [field: string, was: number, is: number])[] {
  const left = stored[node]?.memoryMap[resource];
  const right = real[node]?.memoryMap[resource];
  if (left === undefined || right === undefined) return [];
  // A container may have memory of all nodes of the group.
  const sum = (machine: MachineMemory, field: "free" | "reserved"): number =>
    (stored[node]?.cells ?? []).reduce((total, each) => total + (machine[each]?.memoryMap[resource]?.[field] ?? 0), 0);
  const where = `${resource} of NUMA node ${node}`;
  return [
    [`total ${where}`, left.total, right.total],
    [`reserved for the system, ${where}`, left.systemReserved, right.systemReserved],
    [`allocatable ${where}`, left.allocatable, right.allocatable],
    [`free ${where}`, sum(stored, "free"), sum(real, "free")],
    [`reserved ${where}`, sum(stored, "reserved"), sum(real, "reserved")],
  ];
}
