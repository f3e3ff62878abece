/** The CPUs of the machine by core, cache, socket and NUMA node; and subsets of them. */
import type { CpuInfo } from "../topology/machine-topology.ts";
import { CpuSet } from "./cpu-set.ts";

type Level = "core" | "uncoreCache" | "socket" | "numaNode";

/** CPUs with what they belong to. Immutable. */
export class CpuDetails {
  readonly cpus: CpuSet;
  readonly #infos: ReadonlyMap<number, CpuInfo>;

  constructor(infos: Iterable<CpuInfo>) {
    this.#infos = new Map([...infos].map((info) => [info.id, info]));
    this.cpus = CpuSet.from(this.#infos.keys());
  }

  keepOnly(cpus: CpuSet): CpuDetails {
    return new CpuDetails([...this.#infos.values()].filter(({ id }) => cpus.has(id)));
  }

  get(cpu: number): CpuInfo | undefined {
    return this.#infos.get(cpu);
  }

  /** Numbers of the level to which the CPUs belong, in ascending order; with `within`, of a part of the CPUs. */
  list(level: Level, within?: { readonly level: Level; readonly ids: readonly number[] }): readonly number[] {
    const infos = [...this.#infos.values()].filter(
      (info) => within === undefined || within.ids.includes(info[within.level]),
    );
    return [...new Set(infos.map((info) => info[level]))].sort((a, b) => a - b);
  }

  cpusIn(level: Level, ...ids: readonly number[]): CpuSet {
    return this.cpus.filter((cpu) => ids.includes(this.#infos.get(cpu)?.[level] ?? -1));
  }
}

export class CpuTopology {
  readonly details: CpuDetails;
  readonly socketCount: number;
  readonly numaNodeCount: number;
  readonly cpusPerCore: number;
  readonly cpusPerSocket: number;
  /** The average, where caches differ in size. */
  readonly cpusPerUncoreCache: number;

  constructor(cpus: readonly CpuInfo[]) {
    this.details = new CpuDetails(cpus);
    const count = (level: Level): number => this.details.list(level).length;
    const perEach = (level: Level): number => Math.floor(cpus.length / count(level));
    this.socketCount = count("socket");
    this.numaNodeCount = count("numaNode");
    this.cpusPerCore = perEach("core");
    this.cpusPerSocket = perEach("socket");
    this.cpusPerUncoreCache = perEach("uncoreCache");
  }
}
