/** Memory of each NUMA node and what containers have of it, in `memory_manager_state` in kubelet's format. */
import { ManagerState, type StateContent } from "../manager-state.ts";
import { CORRUPT, fnv32a, isRecord, parseStateJson, printGoMap, printGoSlice, sortedEntries } from "../state-file.ts";

/** Bytes of one kind of memory of a node. */
export interface MemoryTable {
  total: number;
  systemReserved: number;
  /** The total less what is reserved for the system and for huge pages. */
  allocatable: number;
  /** Allocated to containers. */
  reserved: number;
  free: number;
}

export interface NodeMemory {
  numberOfAssignments: number;
  /** By resource: `memory`, `hugepages-2Mi`. */
  memoryMap: Record<string, MemoryTable>;
  /** The nodes that hold the memory of one container together. */
  cells: readonly number[];
}

export interface MemoryBlock {
  readonly numaAffinity: readonly number[];
  readonly type: string;
  readonly size: number;
}

/** By number of the NUMA node. */
export type MachineMemory = Record<number, NodeMemory>;

interface MemoryCheckpoint {
  readonly policyName: string;
  readonly machineState: MachineMemory;
  readonly entries: Readonly<Record<string, Readonly<Record<string, readonly MemoryBlock[]>>>>;
}

/** What is shared is the memory of the machine. */
export type MemoryState = ManagerState<MachineMemory, readonly MemoryBlock[]>;

type MemoryContent = StateContent<MachineMemory, readonly MemoryBlock[]>;

/** Rejects with a message for the operator when the file is of another policy, or damaged. */
export function openMemoryState(path: string, policy: string): Promise<MemoryState> {
  return ManagerState.open(path, policy, {
    manager: "memory",
    prefix: "[memorymanager] ",
    initial: {},
    format: formatState,
    parse: parseState,
  });
}

function formatState({ policy, shared, assignments }: MemoryContent): string {
  const entries = [...assignments].map(([uid, containers]) => [uid, Object.fromEntries(containers)]);
  return formatCheckpoint({ policyName: policy, machineState: shared, entries: Object.fromEntries(entries) });
}

function parseState(text: string): MemoryContent {
  const { policyName, machineState, entries } = parseCheckpoint(text);
  const assignments = Object.entries(entries).map(
    ([uid, containers]) => [uid, new Map(Object.entries(containers))] as const,
  );
  return { policy: policyName, shared: machineState, assignments: new Map(assignments) };
}

function formatCheckpoint(checkpoint: MemoryCheckpoint): string {
  const { policyName, machineState } = checkpoint;
  const sort = <T>(map: Readonly<Record<string, T>>): Record<string, T> => Object.fromEntries(sortedEntries(map));
  const machine = Object.entries(machineState).map(([node, { numberOfAssignments, memoryMap, cells }]) => [
    node,
    { numberOfAssignments, memoryMap: sort(memoryMap), cells },
  ]);
  const entries = sortedEntries(checkpoint.entries).map(([uid, containers]) => [uid, sort(containers)]);
  return JSON.stringify({
    policyName,
    machineState: Object.fromEntries(machine),
    ...(entries.length === 0 ? {} : { entries: Object.fromEntries(entries) }),
    checksum: computeChecksum(checkpoint),
  });
}

/** The checksum of the struct as kubelet prints it. */
function computeChecksum({ policyName, machineState, entries }: MemoryCheckpoint): number {
  // Numbers are in ascending order already.
  const machine = Object.entries(machineState).map(([node, memory]) => `${node}:<*>${printNode(memory)}`);
  const assignments = printGoMap(entries, (containers) =>
    printGoMap(containers, (blocks) => printGoSlice(blocks, printBlock)),
  );
  const fields = [
    `PolicyName:(string)${policyName}`,
    `MachineState:(state.NUMANodeMap)map[${machine.join(" ")}]`,
    `Entries:(state.ContainerMemoryAssignments)${assignments}`,
    "Checksum:(checksum.Checksum)0",
  ];
  return fnv32a(`(*state.MemoryManagerCheckpoint){${fields.join(" ")}}`);
}

function printNode({ numberOfAssignments, memoryMap, cells }: NodeMemory): string {
  const fields = [
    `NumberOfAssignments:(int)${numberOfAssignments}`,
    `MemoryMap:(map[v1.ResourceName]*state.MemoryTable)${printGoMap(memoryMap, (table) => `<*>${printTable(table)}`)}`,
    `Cells:([]int)${printGoSlice(cells)}`,
  ];
  return `{${fields.join(" ")}}`;
}

function printTable({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  const named = { TotalMemSize: total, SystemReserved: systemReserved };
  const values = { ...named, Allocatable: allocatable, Reserved: reserved, Free: free };
  return `{${Object.entries(values)
    .map(([name, value]) => `${name}:(uint64)${value}`)
    .join(" ")}}`;
}

function printBlock({ numaAffinity, type, size }: MemoryBlock): string {
  return `{NUMAAffinity:([]int)${printGoSlice(numaAffinity)} Type:(v1.ResourceName)${type} Size:(uint64)${size}}`;
}

function parseCheckpoint(text: string): MemoryCheckpoint {
  const { policyName = "", machineState = {}, entries = {}, checksum = 0 } = parseStateJson(text);
  const checkpoint = {
    policyName: String(policyName),
    machineState: toMachine(machineState),
    entries: toEntries(entries),
  };
  if (checksum !== 0 && checksum !== computeChecksum(checkpoint)) throw new Error(CORRUPT);
  return checkpoint;
}

function toMachine(json: unknown): MachineMemory {
  const machine: MachineMemory = {};
  for (const [node, memory] of isRecord(json) ? Object.entries(json) : []) {
    if (!isRecord(memory) || !isRecord(memory.memoryMap)) throw new Error(CORRUPT);
    const tables = Object.entries(memory.memoryMap).map(([name, table]) => [name, toTable(table)] as const);
    machine[Number(node)] = {
      numberOfAssignments: toNumber(memory.numberOfAssignments),
      memoryMap: Object.fromEntries(tables),
      cells: toNumbers(memory.cells),
    };
  }
  return machine;
}

function toTable(json: unknown): MemoryTable {
  if (!isRecord(json)) throw new Error(CORRUPT);
  return {
    total: toNumber(json.total),
    systemReserved: toNumber(json.systemReserved),
    allocatable: toNumber(json.allocatable),
    reserved: toNumber(json.reserved),
    free: toNumber(json.free),
  };
}

function toEntries(json: unknown): MemoryCheckpoint["entries"] {
  const entries: Record<string, Readonly<Record<string, readonly MemoryBlock[]>>> = {};
  for (const [uid, containers] of isRecord(json) ? Object.entries(json) : []) {
    if (!isRecord(containers)) throw new Error(CORRUPT);
    const blocks = Object.entries(containers).map(([name, list]) => [name, toBlocks(list)] as const);
    entries[uid] = Object.fromEntries(blocks);
  }
  return entries;
}

function toBlocks(json: unknown): readonly MemoryBlock[] {
  if (!Array.isArray(json)) throw new Error(CORRUPT);
  return json.map((block: unknown) => {
    if (!isRecord(block)) throw new Error(CORRUPT);
    const { numaAffinity, type, size } = block;
    return { numaAffinity: toNumbers(numaAffinity), type: String(type ?? ""), size: toNumber(size) };
  });
}

function toNumber(json: unknown): number {
  if (json === undefined) return 0;
  if (typeof json !== "number" || !Number.isSafeInteger(json) || json < 0) throw new Error(CORRUPT);
  return json;
}

function toNumbers(json: unknown): readonly number[] {
  if (!Array.isArray(json)) throw new Error(CORRUPT);
  return json.map(toNumber);
}
