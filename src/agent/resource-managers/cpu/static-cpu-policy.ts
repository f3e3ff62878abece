/**
 * Gives whole CPUs to containers of Guaranteed pods that request them. All other containers share the remaining ones,
 * which include the reserved CPUs unless the reservation is strict.
 */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { hasPodLevelResources } from "../../../api/core/pod-spec/resources.ts";
import { appContainers, initContainers, isSidecar, podUid } from "../../pods/pod-fields.ts";
import { getPodQosClass } from "../../pods/resources/qos.ts";
import { parseMillis } from "../../pods/resources/quantities.ts";
import { INVALID_STATE_ADVICE } from "../state-file.ts";
import { countNodes, iterateMasks, type NumaMask, nodesOf } from "../topology/numa-mask.ts";
import {
  AdmissionError,
  type AffinityStore,
  type ResourceHints,
  type TopologyHint,
} from "../topology/topology-hint.ts";
import type { CpuMetrics } from "./cpu-metrics.ts";
import type { CpuPolicyOptions } from "./cpu-policy-options.ts";
import { CpuSet } from "./cpu-set.ts";
import type { CpuState } from "./cpu-state.ts";
import type { CpuDetails, CpuTopology } from "./cpu-topology.ts";
import { takeDistributed, takePacked } from "./take-cpus.ts";

export interface StaticCpuPolicyOptions {
  readonly topology: CpuTopology;
  readonly options: CpuPolicyOptions;
  readonly reservedCount: number;
  /** Empty: the policy chooses them. */
  readonly reservedCpus: CpuSet;
  readonly affinities: AffinityStore;
  readonly state: CpuState;
  readonly metrics: CpuMetrics;
}

const RESOURCE = "cpu";

export class StaticCpuPolicy {
  readonly #options: StaticCpuPolicyOptions;
  readonly #reserved: CpuSet;
  /** The reserved CPUs and their siblings. */
  readonly #reservedCores: CpuSet;
  /** CPUs of init containers, which later containers of the same pod use. Only of the pod allocated last. */
  #reusable: { readonly uid: string; readonly cpus: CpuSet } = { uid: "", cpus: CpuSet.empty };
  /** NUMA nodes of which containers have had CPUs. */
  readonly #usedNodes = new Set<number>();

  /** Throws Kubernetes' message when the CPUs cannot be reserved or the state does not fit the machine. */
  constructor(options: StaticCpuPolicyOptions) {
    this.#options = options;
    const { topology, reservedCount, reservedCpus } = options;
    this.#reserved = reservedCpus.isEmpty ? this.#takeReserved(reservedCount) : reservedCpus;
    if (this.#reserved.size !== reservedCount) {
      const sizes = `size of ${this.#reserved} did not equal ${reservedCount}`;
      throw new Error(`[cpumanager] unable to reserve the required amount of CPUs (${sizes})`);
    }
    const cores = [...this.#reserved].map((cpu) => {
      const core = topology.details.get(cpu)?.core;
      if (core !== undefined) return core;
      const why = `unknown CPU ID: ${cpu}`;
      throw new Error(`[cpumanager] unable to build the reserved physical CPUs from the reserved set: ${why}`);
    });
    this.#reservedCores = topology.details.cpusIn("core", ...cores);
    try {
      this.#validateState();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`${text}, ${INVALID_STATE_ADVICE}`, { cause: error });
    }
    const { aligned, alignmentFailures } = options.metrics;
    for (const boundary of ["physical_cpu", "uncore_cache"]) aligned.with("container", boundary).inc(0);
    alignmentFailures.with("container", "physical_cpu").inc(0);
    this.#updatePoolMetrics();
  }

  /** CPUs that containers could have for themselves if none had any. */
  get allocatable(): CpuSet {
    return this.#options.topology.details.cpus.difference(this.#reserved);
  }

  /** Allocates the CPUs of a container, or finds them allocated. Throws the reason for which the pod is rejected. */
  allocate(pod: Pod, container: Container): void {
    const { state, affinities, metrics, options } = this.#options;
    if (hasPodLevelResources(pod.spec)) return;
    const count = countExclusiveCpus(pod, container);
    if (count === 0) return;
    metrics.requests.with().inc();
    try {
      if (options.fullCoresOnly) this.#checkFullCores(count);
      const uid = podUid(pod);
      const allocated = state.get(uid, container.name);
      const { affinity } = affinities.getAffinity(uid, container.name);
      const cpus = allocated ?? this.#takeAligned(count, affinity, this.#getReusable(uid));
      if (allocated === undefined) {
        state.set(uid, container.name, cpus);
        if (this.#isOfOneCache(cpus)) metrics.aligned.with("container", "uncore_cache").inc();
      }
      this.#updateReusable(pod, container, cpus);
      this.#updatePoolMetrics();
      if (options.fullCoresOnly) metrics.aligned.with("container", "physical_cpu").inc();
    } catch (error) {
      metrics.errors.with().inc();
      if (options.fullCoresOnly) metrics.alignmentFailures.with("container", "physical_cpu").inc();
      throw error;
    }
  }

  remove(uid: string, container: string): void {
    const { state } = this.#options;
    const cpus = state.get(uid, container);
    if (cpus === undefined) return;
    state.delete(uid, container);
    // Containers of the pod may use the same CPUs, one after the other.
    const inUse = CpuSet.empty.union(...(state.assignments.get(uid)?.values() ?? []));
    state.setShared(state.shared.union(cpus.difference(inUse)));
    this.#updatePoolMetrics();
  }

  getTopologyHints(pod: Pod, container: Container): ResourceHints {
    const { state } = this.#options;
    if (hasPodLevelResources(pod.spec)) return {};
    const requested = countExclusiveCpus(pod, container);
    if (requested === 0) return {};
    const allocated = state.get(podUid(pod), container.name);
    if (allocated === undefined) {
      return { [RESOURCE]: this.#makeHints(this.#available, this.#getReusable(podUid(pod)), requested) };
    }
    if (allocated.size !== requested) return { [RESOURCE]: [] };
    return { [RESOURCE]: this.#makeHints(allocated, CpuSet.empty, requested) };
  }

  getPodTopologyHints(pod: Pod): ResourceHints {
    const { state } = this.#options;
    if (hasPodLevelResources(pod.spec)) return {};
    const requested = countPodCpus(pod);
    if (requested === 0) return {};
    let assigned = CpuSet.empty;
    for (const container of [...initContainers(pod), ...appContainers(pod)]) {
      const allocated = state.get(podUid(pod), container.name);
      if (allocated === undefined) continue;
      if (allocated.size !== countExclusiveCpus(pod, container)) return { [RESOURCE]: [] };
      assigned = assigned.union(allocated);
    }
    if (assigned.size === requested) return { [RESOURCE]: this.#makeHints(assigned, CpuSet.empty, requested) };
    const reusable = this.#getReusable(podUid(pod)).union(assigned);
    return { [RESOURCE]: this.#makeHints(this.#available, reusable, requested) };
  }

  #isOfOneCache(cpus: CpuSet): boolean {
    const { details } = this.#options.topology;
    return new Set([...cpus].map((cpu) => details.get(cpu)?.uncoreCache)).size <= 1;
  }

  get #available(): CpuSet {
    return this.#options.state.shared.difference(this.#reserved);
  }

  #takeReserved(count: number): CpuSet {
    try {
      return this.#take(this.#options.topology.details.cpus, count);
    } catch {
      return CpuSet.empty;
    }
  }

  #validateState(): void {
    const { state, topology, options } = this.#options;
    const all = options.strictReservation ? topology.details.cpus.difference(this.#reserved) : topology.details.cpus;
    const shared = state.shared;
    if (shared.isEmpty) {
      if (state.assignments.size > 0) throw new Error("default cpuset cannot be empty");
      state.setShared(all);
      return;
    }
    const reserved = this.#reserved.intersection(shared);
    if (options.strictReservation && !reserved.isEmpty) {
      throw new Error(`some of strictly reserved cpus: "${reserved}" are present in defaultCpuSet: "${shared}"`);
    }
    if (!options.strictReservation && !reserved.equals(this.#reserved)) {
      throw new Error(`not all reserved cpus: "${this.#reserved}" are present in defaultCpuSet: "${shared}"`);
    }
    let known = shared;
    for (const [uid, containers] of state.assignments) {
      for (const [name, cpus] of containers) {
        if (!shared.intersection(cpus).isEmpty) {
          const what = `pod: ${uid}, container: ${name} cpuset: "${cpus}"`;
          throw new Error(`${what} overlaps with default cpuset "${shared}"`);
        }
        known = known.union(cpus);
      }
    }
    if (!known.equals(all)) {
      throw new Error(`current set of available CPUs "${all}" doesn't match with CPUs in state "${known}"`);
    }
  }

  /** A request of part of a core would leave the rest of it to another container. */
  #checkFullCores(count: number): void {
    const { topology, state } = this.#options;
    const { cpusPerCore } = topology;
    if (count % cpusPerCore !== 0) {
      const figures = `requested ${count} cpus not multiple cpus per core = ${cpusPerCore}`;
      throw new AdmissionError("SMTAlignmentError", `SMT Alignment Error: ${figures}`);
    }
    const free = state.shared.difference(this.#reservedCores).size;
    if (count <= free) return;
    const figures = `available physical CPUs = ${free}, requested CPUs = ${count}, CPUs per core = ${cpusPerCore}`;
    throw new AdmissionError("SMTAlignmentError", `SMT Alignment Error: not enough free physical CPUs: ${figures}`);
  }

  #takeAligned(count: number, affinity: NumaMask | undefined, reusable: CpuSet): CpuSet {
    const { state } = this.#options;
    const available = this.#available.union(reusable);
    const near = affinity === undefined ? CpuSet.empty : this.#findAligned(affinity, available);
    const aligned = this.#take(near, Math.min(count, near.size));
    const rest = this.#take(available.difference(aligned), count - aligned.size);
    const cpus = aligned.union(rest);
    state.setShared(state.shared.difference(cpus));
    return cpus;
  }

  #findAligned(affinity: NumaMask, available: CpuSet): CpuSet {
    const { topology, options } = this.#options;
    const nodes = nodesOf(affinity);
    if (!options.alignBySocket) return available.intersection(topology.details.cpusIn("numaNode", ...nodes));
    const sockets = topology.details.list("socket", { level: "numaNode", ids: nodes });
    return available.intersection(topology.details.cpusIn("socket", ...sockets));
  }

  #take(available: CpuSet, count: number): CpuSet {
    const { topology, options } = this.#options;
    const sorting = options.distributeAcrossCores ? "spread" : "packed";
    const request = { topology, available, count, sorting } as const;
    if (options.distributeAcrossNuma) return takeDistributed(request, options.fullCoresOnly ? topology.cpusPerCore : 1);
    return takePacked(request, options.alignByUncoreCache);
  }

  #getReusable(uid: string): CpuSet {
    return this.#reusable.uid === uid ? this.#reusable.cpus : CpuSet.empty;
  }

  #updateReusable(pod: Pod, container: Container, cpus: CpuSet): void {
    const uid = podUid(pod);
    const before = this.#getReusable(uid);
    const isInit = initContainers(pod).some((each) => each.name === container.name && !isSidecar(each));
    this.#reusable = { uid, cpus: isInit ? before.union(cpus) : before.difference(cpus) };
  }

  /** Nodes whose CPUs satisfy the request; the smallest sets are preferred. */
  #makeHints(available: CpuSet, reusable: CpuSet, requested: number): readonly TopologyHint[] {
    const { details } = this.#options.topology;
    const nodes = details.list("numaNode");
    const [all, free, used] = [details.cpus, available, reusable].map((cpus) => countByNode(details, cpus));
    const sum = (counts: ReadonlyMap<number, number> | undefined, members: readonly number[]): number =>
      members.reduce((total, node) => total + (counts?.get(node) ?? 0), 0);
    let smallest = nodes.length;
    const masks: NumaMask[] = [];
    for (const mask of iterateMasks(nodes)) {
      const members = nodesOf(mask);
      if (members.length < smallest && sum(all, members) >= requested) smallest = members.length;
      // CPUs of init containers are used first, so that their nodes are part of every hint.
      if (sum(used, members) < reusable.size) continue;
      if (reusable.size + sum(free, members) >= requested) masks.push(mask);
    }
    return masks.map((affinity) => ({ affinity, isPreferred: this.#isPreferred(affinity, smallest) }));
  }

  #isPreferred(affinity: NumaMask, smallest: number): boolean {
    const { topology, options } = this.#options;
    if (countNodes(affinity) === smallest) return true;
    const nodesPerSocket = Math.floor(topology.numaNodeCount / topology.socketCount);
    if (!options.alignBySocket || nodesPerSocket === 0) return false;
    const sockets = topology.details.list("socket", { level: "numaNode", ids: nodesOf(affinity) });
    return sockets.length === Math.ceil(smallest / nodesPerSocket);
  }

  #updatePoolMetrics(): void {
    const { state, metrics, topology } = this.#options;
    const exclusive = CpuSet.empty.union(...[...state.assignments.values()].flatMap((each) => [...each.values()]));
    metrics.sharedPoolMillis.with().set(this.#available.size * 1000);
    metrics.exclusive.with().set(exclusive.size);
    const counts = countByNode(topology.details, exclusive);
    for (const node of new Set([...counts.keys(), ...this.#usedNodes])) {
      this.#usedNodes.add(node);
      metrics.exclusiveByNode.with(String(node)).set(counts.get(node) ?? 0);
    }
  }
}

function countByNode(details: CpuDetails, cpus: CpuSet): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const cpu of cpus) {
    const node = details.get(cpu)?.numaNode ?? 0;
    counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  return counts;
}

/** The CPUs that the container gets for itself: 0 unless the pod is Guaranteed and requests whole CPUs. */
export function countExclusiveCpus(pod: Pod, container: Container): number {
  if (getPodQosClass(pod) !== "Guaranteed") return 0;
  const { requests, limits } = container.resources ?? {};
  const millis = parseMillis(requests?.cpu ?? limits?.cpu);
  return millis % 1000 === 0 ? millis / 1000 : 0;
}

/** Init containers run one after the other, beside the sidecars before them. */
function countPodCpus(pod: Pod): number {
  let sidecars = 0;
  let starting = 0;
  for (const container of initContainers(pod)) {
    const count = countExclusiveCpus(pod, container);
    if (isSidecar(container)) sidecars += count;
    else starting = Math.max(starting, sidecars + count);
  }
  const running = appContainers(pod).reduce((sum, container) => sum + countExclusiveCpus(pod, container), sidecars);
  return Math.max(starting, running);
}
