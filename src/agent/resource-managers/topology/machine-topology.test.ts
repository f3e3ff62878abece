import { join } from "node:path";
import t from "tap";
import { type FakeMachine, fakeMachines, writeFakeMachine } from "../../../testing/agent/fake-machine.ts";
import { CpuSet } from "../cpu/cpu-set.ts";
import { CpuTopology } from "../cpu/cpu-topology.ts";
import { type MachineTopology, readMachineTopology } from "./machine-topology.ts";

const GIB = 2 ** 30;

async function read(t: Test, machine: FakeMachine): Promise<MachineTopology> {
  const root = join(t.testdir({}), "sys");
  await writeFakeMachine(root, machine);
  return readMachineTopology(root, GIB);
}
type Test = Pick<typeof t, "testdir">;

t.test("two sockets with SMT: cores are named by their lowest CPU, as in Kubernetes", async (t) => {
  const { cpus, numaNodes } = await read(t, fakeMachines.dualSocketHt);
  t.equal(cpus.length, 12);
  t.same(cpus[7], { id: 7, core: 1, socket: 0, numaNode: 0, uncoreCache: 0 });
  t.same(cpus[10], { id: 10, core: 4, socket: 1, numaNode: 1, uncoreCache: 1 });
  t.same(
    numaNodes.map(({ id, memoryBytes, distances }) => ({ id, memoryBytes, distances })),
    [
      { id: 0, memoryBytes: 8 * GIB, distances: [10, 21] },
      { id: 1, memoryBytes: 8 * GIB, distances: [21, 10] },
    ],
  );
  const { socketCount, numaNodeCount, cpusPerCore, cpusPerSocket } = new CpuTopology(cpus);
  t.same(
    { socketCount, numaNodeCount, cpusPerCore, cpusPerSocket },
    {
      socketCount: 2,
      numaNodeCount: 2,
      cpusPerCore: 2,
      cpusPerSocket: 6,
    },
  );
});

t.test("adjacent numbers of threads make the same cores", async (t) => {
  const { cpus } = await read(t, { ...fakeMachines.singleSocketHt, isAdjacent: true });
  t.same(
    cpus.map(({ core }) => core),
    [0, 0, 2, 2, 4, 4, 6, 6],
  );
});

t.test("four NUMA nodes on two sockets, with huge pages", async (t) => {
  const { cpus, numaNodes } = await read(t, { ...fakeMachines.fourNodesHt, hugePages: { 2048: 512, 1048576: 2 } });
  const { details } = new CpuTopology(cpus);
  t.equal(`${details.cpusIn("numaNode", 3)}`, "30-39,70-79");
  t.equal(`${details.cpusIn("socket", 0)}`, "0-19,40-59");
  t.same(numaNodes[2]?.hugePages, { "hugepages-2Mi": GIB, "hugepages-1Gi": 2 * GIB });
});

t.test("caches of different sizes keep their CPUs; a cache of a whole node is no cache of its own", async (t) => {
  const uneven = new CpuTopology((await read(t, fakeMachines.unevenCaches)).cpus);
  t.equal(`${uneven.details.cpusIn("uncoreCache", 0)}`, "0-5,10-15");
  t.equal(`${uneven.details.cpusIn("uncoreCache", 1)}`, "6-9,16-19");
  t.equal(uneven.cpusPerUncoreCache, 10);
  const whole = new CpuTopology((await read(t, fakeMachines.dualSocketHt)).cpus);
  t.same(whole.details.list("uncoreCache"), [0, 1]);
});

t.test("CPUs that are offline do not count; a kernel without NUMA has one node", async (t) => {
  const { cpus } = await read(t, { ...fakeMachines.singleSocketHt, offline: [3, 7] });
  t.equal(`${CpuSet.from(cpus.map(({ id }) => id))}`, "0-2,4-6");
  const root = t.testdir({ devices: { system: { cpu: { cpu0: {}, cpu1: {} } } } });
  t.same((await readMachineTopology(root, GIB)).numaNodes, [
    { id: 0, memoryBytes: GIB, hugePages: {}, distances: [10] },
  ]);
  await t.rejects(readMachineTopology(join(root, "none"), GIB), /no CPU is found in/);
});

t.test("the machine of this test has CPUs and memory", async (t) => {
  const { cpus, numaNodes } = await readMachineTopology("/sys", GIB);
  t.ok(cpus.length > 0);
  t.ok((numaNodes[0]?.memoryBytes ?? 0) > 0);
});

t.test("CpuSet reads and writes the kernel's format", async (t) => {
  for (const text of ["", "0", "0-3", "0-1,4,6-8"]) t.equal(`${CpuSet.parse(text)}`, text);
  t.equal(`${CpuSet.parse("3,1,2")}`, "1-3");
  t.throws(() => CpuSet.parse("3-1"), /invalid range "3-1" \(3 > 1\)/);
  t.throws(() => CpuSet.parse("1.3"), /strconv.Atoi: parsing "1.3": invalid syntax/);
  t.throws(() => CpuSet.parse("0-99999999"), /value out of range/);
});
