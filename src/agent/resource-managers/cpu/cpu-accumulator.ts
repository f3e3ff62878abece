/** Collects CPUs for a request, the largest free unit of the topology first, with Kubernetes' order of preference. */
import { CpuSet } from "./cpu-set.ts";
import type { CpuDetails, CpuTopology } from "./cpu-topology.ts";

/** `packed` fills cores one after the other; `spread` takes one CPU of each core first. */
export type CpuSorting = "packed" | "spread";

export class CpuAccumulator {
  readonly #topology: CpuTopology;
  readonly #sorting: CpuSorting;
  /** The CPUs that are still free. */
  #free: CpuDetails;
  #needed: number;
  #result = CpuSet.empty;

  constructor(topology: CpuTopology, available: CpuSet, count: number, sorting: CpuSorting) {
    this.#topology = topology;
    this.#sorting = sorting;
    this.#free = topology.details.keepOnly(available);
    this.#needed = count;
  }

  get result(): CpuSet {
    return this.#result;
  }

  get free(): CpuDetails {
    return this.#free;
  }

  get needed(): number {
    return this.#needed;
  }

  get isSatisfied(): boolean {
    return this.#needed < 1;
  }

  /** There are fewer free CPUs than needed. */
  get isFailed(): boolean {
    return this.#needed > this.#free.cpus.size;
  }

  take(cpus: CpuSet): void {
    this.#result = this.#result.union(cpus);
    this.#free = this.#free.keepOnly(this.#free.cpus.difference(this.#result));
    this.#needed -= cpus.size;
  }

  /** Whole NUMA nodes and whole sockets; those that contain the others first. */
  takeLargestUnits(): void {
    const steps = [() => this.#takeFullNodes(), () => this.#takeFullSockets()];
    for (const step of this.#isNodeFirst ? steps : steps.toReversed()) {
      step();
      if (this.isSatisfied) return;
    }
  }

  /** Whole caches, then whole cores of one cache if they are all that is needed. */
  takeUncoreCaches(): void {
    for (const cache of this.#sortUncoreCaches()) {
      if (this.#needed >= this.#topology.cpusPerUncoreCache) this.#takeFullUncoreCaches();
      if (this.isSatisfied) return;
      this.#takePartialUncoreCache(cache);
      if (this.isSatisfied) return;
    }
  }

  takeFullCores(): void {
    for (const core of this.#sortCores()) this.#takeIfFull("core", core, this.#topology.cpusPerCore);
  }

  takeRemaining(): void {
    for (const cpu of this.#sortCpus()) {
      this.take(CpuSet.of(cpu));
      if (this.isSatisfied) return;
    }
  }

  /** NUMA nodes with free CPUs, in the order in which they are taken. */
  sortNodes(): readonly number[] {
    if (this.#isNodeFirst) return this.#sort("numaNode", this.#free.list("numaNode"));
    return this.sortSockets().flatMap((socket) =>
      this.#sort("numaNode", this.#free.list("numaNode", { level: "socket", ids: [socket] })),
    );
  }

  /** The fewest and the most NUMA nodes that can satisfy the request in groups of CPUs. */
  nodeCountRange(groupSize: number): readonly [min: number, max: number] {
    const { details } = this.#topology;
    const groups = Math.trunc((details.cpus.size - 1) / groupSize) + 1;
    const groupsPerNode = Math.trunc((groups - 1) / details.list("numaNode").length) + 1;
    const needed = Math.trunc((this.#needed - 1) / groupSize) + 1;
    const min = Math.trunc((needed - 1) / groupsPerNode) + 1;
    return [min, Math.min(needed, this.#free.list("numaNode").length)];
  }

  sortSockets(): readonly number[] {
    if (!this.#isNodeFirst) return this.#sort("socket", this.#free.list("socket"));
    return this.sortNodes().flatMap((node) =>
      this.#sort("socket", this.#free.list("socket", { level: "numaNode", ids: [node] })),
    );
  }

  /** A NUMA node contains at least a socket. */
  get #isNodeFirst(): boolean {
    return this.#topology.socketCount >= this.#topology.numaNodeCount;
  }

  #takeFullNodes(): void {
    const { details } = this.#topology;
    for (const node of this.sortNodes()) {
      const cpus = details.cpusIn("numaNode", node);
      if (this.#free.cpusIn("numaNode", node).size === cpus.size) this.#takeIfNeeded(cpus);
    }
  }

  #takeFullSockets(): void {
    for (const socket of this.sortSockets()) this.#takeIfFull("socket", socket, this.#topology.cpusPerSocket);
  }

  #takeFullUncoreCaches(): void {
    const { details } = this.#topology;
    for (const cache of this.#sortUncoreCaches()) {
      const cpus = details.cpusIn("uncoreCache", cache);
      if (this.#free.cpusIn("uncoreCache", cache).size === cpus.size) this.#takeIfNeeded(cpus);
    }
  }

  /** Cores of one cache, if they are all that is needed: of the last one a single CPU where an odd number is needed. */
  #takePartialUncoreCache(cache: number): void {
    const { cpusPerCore } = this.#topology;
    const coreCount = Math.ceil(this.#needed / cpusPerCore);
    const cores = this.#free.list("core", { level: "uncoreCache", ids: [cache] }).slice(0, coreCount);
    const cpus = [...this.#free.cpusIn("core", ...cores)];
    const isPart = this.#needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > this.#needed;
    const taken = isPart ? cpus.slice(0, -1) : cpus;
    if (taken.length === this.#needed) this.take(CpuSet.from(taken));
  }

  /**
   * Takes a unit of the usual size that is free. Where some CPUs are offline, units differ in size, and a larger one
   * with that many free CPUs has others that are not free, which Kubernetes takes all the same.
   */
  #takeIfFull(level: "socket" | "core", id: number, usualSize: number): void {
    const free = this.#free.cpusIn(level, id);
    const isFull = free.size === this.#topology.details.cpusIn(level, id).size;
    if (isFull && free.size === usualSize) this.#takeIfNeeded(free);
  }

  #takeIfNeeded(cpus: CpuSet): void {
    if (this.#needed >= cpus.size) this.take(cpus);
  }

  #sortUncoreCaches(): readonly number[] {
    return this.sortNodes().flatMap((node) =>
      this.#sort("uncoreCache", this.#free.list("uncoreCache", { level: "numaNode", ids: [node] })),
    );
  }

  #sortCores(): readonly number[] {
    const [level, parents] = this.#isNodeFirst
      ? (["socket", this.sortSockets()] as const)
      : (["numaNode", this.sortNodes()] as const);
    return parents.flatMap((parent) => this.#sort("core", this.#free.list("core", { level, ids: [parent] })));
  }

  #sortCpus(): readonly number[] {
    return this.#sorting === "packed"
      ? this.#sortCores().flatMap((core) => [...this.#free.cpusIn("core", core)])
      : this.sortSockets().flatMap((socket) => [...this.#free.cpusIn("socket", socket)]);
  }

  /** Those with the fewest free CPUs first. */
  #sort(level: "numaNode" | "socket" | "uncoreCache" | "core", ids: readonly number[]): readonly number[] {
    const counts = new Map(ids.map((id) => [id, this.#free.cpusIn(level, id).size]));
    const count = (id: number): number => counts.get(id) ?? 0;
    return [...ids].sort((a, b) => count(a) - count(b) || a - b);
  }
}
