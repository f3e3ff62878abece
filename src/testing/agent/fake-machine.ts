/** A sysfs tree of a machine with several sockets, NUMA nodes, threads and caches. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface FakeMachine {
  readonly sockets: number;
  readonly nodesPerSocket: number;
  readonly coresPerNode: number;
  readonly threads: number;
  /** Last-level caches of a node, by their number of cores; default: one for the whole node. */
  readonly cacheCores?: readonly number[];
  /** Whether the threads of a core have adjacent numbers; else all first threads come first. */
  readonly isAdjacent?: boolean;
  /** Default: 8. */
  readonly memoryGib?: number;
  /** By size in KiB: pages of each node. */
  readonly hugePages?: Readonly<Record<number, number>>;
  /** Default: 10 to itself, 12 in the socket, 21 beyond. */
  readonly distances?: readonly (readonly number[])[];
  readonly offline?: readonly number[];
}

interface FakeCpu {
  readonly id: number;
  readonly core: number;
  readonly node: number;
  readonly cache: number;
}

/** Machines with which the tables of the tests deal. */
export const fakeMachines = {
  singleSocketHt: { sockets: 1, nodesPerSocket: 1, coresPerNode: 4, threads: 2 },
  dualSocketHt: { sockets: 2, nodesPerSocket: 1, coresPerNode: 3, threads: 2 },
  dualSocketNoHt: { sockets: 2, nodesPerSocket: 1, coresPerNode: 4, threads: 1 },
  fourNodesHt: { sockets: 2, nodesPerSocket: 2, coresPerNode: 10, threads: 2 },
  eightNodesHt: { sockets: 2, nodesPerSocket: 4, coresPerNode: 16, threads: 2 },
  splitCaches: { sockets: 1, nodesPerSocket: 1, coresPerNode: 16, threads: 1, cacheCores: [4, 4, 4, 4] },
  unevenCaches: { sockets: 1, nodesPerSocket: 1, coresPerNode: 10, threads: 2, cacheCores: [6, 4] },
} as const satisfies Readonly<Record<string, FakeMachine>>;

/** Writes the tree; `root` is what `/sys` is. */
export async function writeFakeMachine(root: string, machine: FakeMachine): Promise<void> {
  const cpus = listCpus(machine);
  const system = join(root, "devices/system");
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(system, path, ".."), { recursive: true });
    await writeFile(join(system, path), `${text}\n`);
  };
  const offline = new Set(machine.offline);
  const online = cpus.filter(({ id }) => !offline.has(id)).sort((a, b) => a.id - b.id);
  await write("cpu/online", online.map(({ id }) => id).join(","));
  for (const cpu of cpus) {
    const directory = `cpu/cpu${cpu.id}`;
    await mkdir(join(system, directory), { recursive: true });
    if (offline.has(cpu.id)) continue;
    const shared = online.filter((each) => each.cache === cpu.cache).map(({ id }) => id);
    const coresPerSocket = machine.nodesPerSocket * machine.coresPerNode;
    await write(`${directory}/topology/core_id`, String(cpu.core % coresPerSocket));
    await write(`${directory}/topology/physical_package_id`, String(Math.floor(cpu.core / coresPerSocket)));
    await write(`${directory}/cache/index0/level`, "1");
    await write(`${directory}/cache/index3/level`, "3");
    await write(`${directory}/cache/index3/id`, String(cpu.cache));
    await write(`${directory}/cache/index3/shared_cpu_list`, shared.join(","));
  }
  await writeNodes(machine, online, write);
}

async function writeNodes(
  machine: FakeMachine,
  online: readonly FakeCpu[],
  write: (path: string, text: string) => Promise<void>,
): Promise<void> {
  const { sockets, nodesPerSocket, memoryGib = 8, hugePages = {}, distances } = machine;
  const count = sockets * nodesPerSocket;
  const nodes = Array.from({ length: count }, (_, node) => node);
  const socketOf = (node: number): number => Math.floor(node / nodesPerSocket);
  const distance = (a: number, b: number): number => (a === b ? 10 : socketOf(a) === socketOf(b) ? 12 : 21);
  await write("node/online", `0-${count - 1}`);
  for (const node of nodes) {
    const own = online.filter((cpu) => cpu.node === node).map(({ id }) => id);
    await write(`node/node${node}/cpulist`, own.join(","));
    await write(`node/node${node}/meminfo`, `Node ${node} MemTotal:       ${memoryGib * 1024 * 1024} kB`);
    await write(`node/node${node}/distance`, (distances?.[node] ?? nodes.map((to) => distance(node, to))).join(" "));
    for (const [kib, pages] of Object.entries(hugePages)) {
      await write(`node/node${node}/hugepages/hugepages-${kib}kB/nr_hugepages`, String(pages));
    }
  }
}

function listCpus({ sockets, nodesPerSocket, coresPerNode, threads, cacheCores, isAdjacent }: FakeMachine): FakeCpu[] {
  const coreCount = sockets * nodesPerSocket * coresPerNode;
  const caches = (cacheCores ?? [coresPerNode]).flatMap((cores, index) => new Array<number>(cores).fill(index));
  const cachesPerNode = cacheCores?.length ?? 1;
  return Array.from({ length: coreCount * threads }, (_, index) => {
    const core = Math.floor(index / threads);
    const thread = index % threads;
    const node = Math.floor(core / coresPerNode);
    const cache = node * cachesPerNode + (caches[core % coresPerNode] ?? 0);
    return { id: isAdjacent === true ? index : thread * coreCount + core, core, node, cache };
  });
}
