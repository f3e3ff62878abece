import t from "tap";
import type { CpuInfo } from "../topology/machine-topology.ts";
import type { CpuSorting } from "./cpu-accumulator.ts";
import { CpuSet } from "./cpu-set.ts";
import { CpuTopology } from "./cpu-topology.ts";
import { takeDistributed, takePacked } from "./take-cpus.ts";

/** Machines of Kubernetes' own tests, by number of CPUs and what each belongs to. */
function machine(count: number, of: (cpu: number) => Omit<CpuInfo, "id">): CpuTopology {
  return new CpuTopology(Array.from({ length: count }, (_, id) => ({ id, ...of(id) })));
}

/** Threads of a core have numbers that differ by the number of cores. */
function byCore(cores: number, threads: number, coresPerSocket: number, coresPerNode: number, coresPerCache = cores) {
  return machine(cores * threads, (cpu) => {
    const core = cpu % cores;
    return {
      core,
      socket: Math.floor(core / coresPerSocket),
      numaNode: Math.floor(core / coresPerNode),
      uncoreCache: Math.floor(core / coresPerCache),
    };
  });
}

const singleSocketHt = byCore(4, 2, 4, 4);
/** Sockets alternate. */
const dualSocketHt = machine(12, (cpu) => ({
  core: cpu % 6,
  socket: cpu % 2,
  numaNode: cpu % 2,
  uncoreCache: cpu % 2,
}));
const dualSocketNoHt = byCore(8, 1, 4, 4);
const fourNodesHt = byCore(40, 2, 20, 10);
const eightNodesHt = byCore(128, 2, 64, 16);
const caches = byCore(16, 1, 16, 16, 4);
const dualSocketCaches = byCore(16, 1, 8, 8, 4);
const multiNumaCaches = byCore(16, 1, 16, 8, 4);
const htCaches = byCore(8, 2, 8, 8, 4);

interface Row {
  readonly topology: CpuTopology;
  readonly available: string;
  readonly count: number;
  readonly taken: string;
}

const row = (topology: CpuTopology, available: string, count: number, taken: string): Row => {
  return { topology, available, count, taken };
};

/** Both algorithms agree on these. */
const common: readonly Row[] = [
  row(singleSocketHt, "0-7", 0, ""),
  row(singleSocketHt, "0-7", 1, "0"),
  row(singleSocketHt, "1,3,5-7", 1, "6"),
  row(singleSocketHt, "0-7", 2, "0,4"),
  row(singleSocketHt, "0-7", 8, "0-7"),
  row(singleSocketHt, "0-3,6", 2, "2,6"),
  row(dualSocketHt, "0-11", 6, "0,2,4,6,8,10"),
  row(fourNodesHt, "0-79", 40, "0-19,40-59"),
  row(fourNodesHt, "0-79", 20, "0-9,40-49"),
  row(fourNodesHt, "10-39,50-79", 20, "10-19,50-59"),
  row(fourNodesHt, "0-79", 60, "0-29,40-69"),
  row(fourNodesHt, "1-39,41-79", 60, "10-39,50-79"),
];

function take({ topology, available, count }: Row, sorting: CpuSorting = "packed", alignByUncoreCache = false): string {
  const request = { topology, available: CpuSet.parse(available), count, sorting };
  return takePacked(request, alignByUncoreCache).toString();
}

function distribute({ topology, available, count }: Row, groupSize: number): string {
  const request = { topology, available: CpuSet.parse(available), count, sorting: "packed" } as const;
  return takeDistributed(request, groupSize).toString();
}

const normal = (cpus: string): string => CpuSet.parse(cpus).toString();

t.test("packed: the largest free units are taken first, as by Kubernetes", async (t) => {
  const rows = [
    ...common,
    row(dualSocketHt, "1-5,7-11", 1, "2"),
    row(dualSocketHt, "0-11", 8, "0,6,2,8,4,10,1,7"),
    row(fourNodesHt, "0-79", 64, "0-29,40-69,30,31,70,71"),
    row(fourNodesHt, "9,30-38,49", 1, "9"),
  ];
  for (const each of rows) t.equal(take(each), normal(each.taken), `${each.count} of ${each.available}`);
  const tooMany = row(singleSocketHt, "0,2,4,6", 5, "");
  t.throws(() => take(tooMany), { message: "not enough cpus available to satisfy request: requested=5, available=4" });
});

t.test("spread: each CPU is on another core", async (t) => {
  const rows = [
    row(singleSocketHt, "0-7", 3, "0-2"),
    row(dualSocketHt, "0-11", 2, "0,2"),
    row(dualSocketHt, "0-11", 3, "0,2,4"),
    row(dualSocketHt, "0-11", 6, "0,2,4,6,8,10"),
    row(dualSocketHt, "0-11", 8, "0,2,4,6,8,10,1,3"),
    row(dualSocketNoHt, "0-7", 2, "0,1"),
    row(fourNodesHt, "0-79", 8, "0-7"),
  ];
  for (const each of rows) t.equal(take(each, "spread"), normal(each.taken), `${each.count} of ${each.available}`);
});

t.test("aligned by cache: whole caches, then part of one", async (t) => {
  const rows = [
    row(caches, "1-15", 10, "1,2,4-11"),
    row(dualSocketCaches, "0-15", 4, "0-3"),
    row(dualSocketCaches, "2-15", 6, "2-7"),
    row(dualSocketCaches, "8-15", 4, "8-11"),
    row(multiNumaCaches, "3,4-8,12", 2, "4,5"),
    row(htCaches, "2-3,10-11,4-7,12-15", 6, "4,5,6,12,13,14"),
    row(htCaches, "1-7,9-15", 10, "4-7,12-15,1,9"),
    // Of an odd number, a single CPU of the last core.
    row(htCaches, "1-15", 3, "1,8,9"),
    row(htCaches, "2-3,10-11,4-7,12-15", 1, "2"),
    row(htCaches, "0-15", 11, "0-3,8-11,4,5,12"),
    row(htCaches, "3,11,4-7,12-15", 5, "4,5,6,12,13"),
  ];
  for (const each of rows)
    t.equal(take(each, "packed", true), normal(each.taken), `${each.count} of ${each.available}`);
});

t.test("cores and sockets that lost CPUs: only CPUs that are free are taken", async (t) => {
  // CPU 3 of core 0 is offline, so that cores have one CPU on average.
  const core = [0, 0, 2, 4, 4, 6, 6];
  const smt = new CpuTopology(
    [0, 1, 2, 4, 5, 6, 7].map((id, index) => {
      return { id, core: core[index] ?? 0, socket: 0, numaNode: 0, uncoreCache: 0 };
    }),
  );
  const sockets = machine(10, (cpu) => ({ core: cpu, socket: cpu < 6 ? 0 : 1, numaNode: 0, uncoreCache: 0 }));
  const rows = [
    [smt, "1,4-7", 2],
    [sockets, "0-4,6", 5],
    [sockets, "1-5,6-9", 6],
  ] as const;
  for (const [topology, available, count] of rows) {
    const taken = CpuSet.parse(take({ topology, available, count, taken: "" }));
    t.ok(taken.isSubsetOf(CpuSet.parse(available)), `${count} of ${available}`);
    t.equal(taken.size, count);
  }
});

t.test("distributed: as many CPUs from each NUMA node, the free ones balanced", async (t) => {
  const rows: readonly (readonly [Row, groupSize: number])[] = [
    ...common.map((each) => [each, 1] as const),
    [row(dualSocketHt, "0-11", 8, "0,6,2,8,1,7,3,9"), 1],
    [row(fourNodesHt, "0-79", 64, "0-7,10-17,20-27,30-37,40-47,50-57,60-67,70-77"), 1],
    [row(fourNodesHt, "0-79", 48, "0-7,10-17,20-27,40-47,50-57,60-67"), 1],
    [row(fourNodesHt, "1-29,32-39,41-69,72-79", 48, "1-8,10-17,20-27,41-48,50-57,60-67"), 1],
    [row(fourNodesHt, "2-29,31-39,42-69,71-79", 48, "10-17,20-27,31-38,50-57,60-67,71-78"), 1],
    [
      row(
        fourNodesHt,
        "0-2,10-12,20-22,30-32,40-41,50-51,60-61,70-71",
        16,
        "0-1,10-11,20-21,30-31,40-41,50-51,60-61,70-71",
      ),
      1,
    ],
    [row(dualSocketHt, "1-5,7-11", 1, "1"), 1],
    [row(dualSocketHt, "1-5,7-11", 1, "2"), 2],
    [row(fourNodesHt, "0-79", 26, "0-6,10-16,40-45,50-55"), 1],
    [row(fourNodesHt, "0-79", 26, "0-6,10-15,40-46,50-55"), 2],
    [row(fourNodesHt, "0-79", 62, "0-7,10-17,20-27,30-37,40-47,50-57,60-66,70-76"), 1],
    [row(fourNodesHt, "0-79", 62, "0-7,10-17,20-27,30-36,40-47,50-57,60-67,70-76"), 2],
    [row(fourNodesHt, "0-8,10-18,20-39,40-48,50-58,60-79", 62, "0-7,10-17,20-27,30-37,40-46,50-56,60-67,70-77"), 1],
    [row(fourNodesHt, "0-8,10-18,20-39,40-48,50-58,60-79", 62, "0-7,10-16,20-27,30-37,40-47,50-56,60-67,70-77"), 2],
    [
      row(
        fourNodesHt,
        "0-3,10-13,20-23,30-36,40-43,50-53,60-63,70-76",
        34,
        "0-3,10-13,20-23,30-34,40-43,50-53,60-63,70-74",
      ),
      1,
    ],
    [
      row(
        eightNodesHt,
        "0,128,30,31,158,159,43-47,171-175,62,63,190,191,75-79,203-207,94,96,222,223,101-111,229-239,126,127,254,255",
        28,
        "43-47,75-79,96,101-105,171-174,203-206,229-232",
      ),
      1,
    ],
  ];
  for (const [each, groupSize] of rows) {
    t.equal(distribute(each, groupSize), normal(each.taken), `${each.count} of ${each.available} by ${groupSize}`);
  }
});
