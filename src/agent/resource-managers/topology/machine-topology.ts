/** Reads the CPUs and the memory of the machine, by NUMA node, from sysfs. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CpuSet } from "../cpu/cpu-set.ts";

export interface CpuInfo {
  readonly id: number;
  /** The lowest CPU of the core: the numbers of the kernel are unique in a socket only. */
  readonly core: number;
  readonly socket: number;
  readonly numaNode: number;
  /** The last-level cache, where not all CPUs of a node share it; else the socket. */
  readonly uncoreCache: number;
}

export interface NumaNode {
  readonly id: number;
  readonly memoryBytes: number;
  /** By name of the resource (`hugepages-2Mi`): bytes. */
  readonly hugePages: Readonly<Record<string, number>>;
  /** The distance to each node, in the order of their numbers. */
  readonly distances: readonly number[];
}

export interface MachineTopology {
  /** Online CPUs, in ascending order. */
  readonly cpus: readonly CpuInfo[];
  /** In ascending order. */
  readonly numaNodes: readonly NumaNode[];
}

/** Caches of a higher level are shared beyond a core. */
const UNCORE_LEVEL_MIN = 3;

/** `memoryBytes` is that of the machine, for a kernel without NUMA. Rejects when sysfs has no CPUs. */
export async function readMachineTopology(sysRoot: string, memoryBytes: number): Promise<MachineTopology> {
  const root = join(sysRoot, "devices/system");
  const nodeIds = await listNumbers(join(root, "node"), /^node(\d+)$/);
  const nodeOf = new Map<number, number>();
  for (const node of nodeIds) {
    for (const cpu of parseList(await readText(join(root, `node/node${node}/cpulist`)))) nodeOf.set(cpu, node);
  }
  const raw = await readCpus(root, nodeOf);
  if (raw.length === 0) throw new Error(`no CPU is found in ${join(root, "cpu")}`);
  const nodes = nodeIds.length === 0 ? [makeOnlyNode(memoryBytes)] : await readNodes(root, nodeIds);
  return { cpus: raw.map((each) => toCpuInfo(each, raw)), numaNodes: nodes };
}

function makeOnlyNode(memoryBytes: number): NumaNode {
  return { id: 0, memoryBytes, hugePages: {}, distances: [10] };
}

interface RawCpu {
  readonly id: number;
  readonly coreId: number;
  readonly socket: number;
  readonly numaNode: number;
  readonly cache: { readonly id: number; readonly cpus: number } | undefined;
}

function toCpuInfo({ id, coreId, socket, numaNode, cache }: RawCpu, all: readonly RawCpu[]): CpuInfo {
  const siblings = all.filter((each) => each.coreId === coreId && each.socket === socket);
  const core = Math.min(...siblings.map((each) => each.id));
  const nodeCpus = all.filter((each) => each.numaNode === numaNode).length;
  const uncoreCache = cache === undefined || cache.cpus === nodeCpus ? socket : cache.id;
  return { id, core, socket, numaNode, uncoreCache };
}

async function readCpus(root: string, nodeOf: ReadonlyMap<number, number>): Promise<readonly RawCpu[]> {
  const ids = await listNumbers(join(root, "cpu"), /^cpu(\d+)$/);
  const online = parseList(await readText(join(root, "cpu/online")));
  const cpus: RawCpu[] = [];
  for (const id of ids) {
    if (!online.isEmpty && !online.has(id)) continue;
    const directory = join(root, `cpu/cpu${id}`);
    const number = async (name: string, absent: number): Promise<number> => {
      const text = await readText(join(directory, "topology", name));
      return /^\d+$/.test(text) ? Number(text) : absent;
    };
    cpus.push({
      id,
      coreId: await number("core_id", id),
      socket: await number("physical_package_id", 0),
      numaNode: nodeOf.get(id) ?? 0,
      cache: await readLastCache(directory),
    });
  }
  return cpus;
}

async function readLastCache(cpuDirectory: string): Promise<RawCpu["cache"]> {
  const directory = join(cpuDirectory, "cache");
  for (const index of (await listNumbers(directory, /^index(\d+)$/)).toReversed()) {
    const path = join(directory, `index${index}`);
    if (Number(await readText(join(path, "level"))) < UNCORE_LEVEL_MIN) continue;
    const id = await readText(join(path, "id"));
    const shared = parseList(await readText(join(path, "shared_cpu_list")));
    if (/^\d+$/.test(id) && !shared.isEmpty) return { id: Number(id), cpus: shared.size };
  }
  return undefined;
}

async function readNodes(root: string, ids: readonly number[]): Promise<readonly NumaNode[]> {
  const nodes: NumaNode[] = [];
  for (const id of ids) {
    const directory = join(root, `node/node${id}`);
    const meminfo = await readText(join(directory, "meminfo"));
    const distances = (await readText(join(directory, "distance"))).split(/\s+/).filter((text) => text !== "");
    nodes.push({
      id,
      memoryBytes: Number(/MemTotal:\s+(\d+) kB/.exec(meminfo)?.[1] ?? 0) * 1024,
      hugePages: await readHugePages(directory),
      distances: distances.map(Number),
    });
  }
  return nodes;
}

async function readHugePages(nodeDirectory: string): Promise<Readonly<Record<string, number>>> {
  const directory = join(nodeDirectory, "hugepages");
  const sizes: Record<string, number> = {};
  for (const kib of await listNumbers(directory, /^hugepages-(\d+)kB$/)) {
    const count = Number(await readText(join(directory, `hugepages-${kib}kB/nr_hugepages`)));
    if (Number.isInteger(count)) sizes[`hugepages-${formatPageSize(kib)}`] = count * kib * 1024;
  }
  return sizes;
}

function formatPageSize(kib: number): string {
  const units = [
    [1024 * 1024, "Gi"],
    [1024, "Mi"],
  ] as const;
  const [size, suffix] = units.find(([unit]) => kib % unit === 0) ?? [1, "Ki"];
  return `${kib / size}${suffix}`;
}

function parseList(text: string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch {
    return CpuSet.empty;
  }
}

async function listNumbers(directory: string, pattern: RegExp): Promise<readonly number[]> {
  const names = await readdir(directory).catch(() => []);
  return names
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

async function readText(path: string): Promise<string> {
  return (await readFile(path, "utf8").catch(() => "")).trim();
}
