/** Eviction signals: the resource that pods use of each, and the condition of its pressure. */

export type PressureType = "MemoryPressure" | "DiskPressure" | "PIDPressure";

/** The name of the resource in messages. */
export type StarvedResource = "memory" | "ephemeral-storage" | "inodes" | "pids";

interface SignalRow {
  readonly resource: StarvedResource;
  readonly condition: PressureType;
}

const memory: SignalRow = { resource: "memory", condition: "MemoryPressure" };
const storage: SignalRow = { resource: "ephemeral-storage", condition: "DiskPressure" };
const inodes: SignalRow = { resource: "inodes", condition: "DiskPressure" };

export const signals = {
  "memory.available": memory,
  "allocatableMemory.available": memory,
  "nodefs.available": storage,
  "nodefs.inodesFree": inodes,
  "imagefs.available": storage,
  "imagefs.inodesFree": inodes,
  "containerfs.available": storage,
  "containerfs.inodesFree": inodes,
  "pid.available": { resource: "pids", condition: "PIDPressure" },
} as const satisfies Readonly<Record<string, SignalRow>>;

export type Signal = keyof typeof signals;

/** Bytes, inodes or processes. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A signal is absent when the node does not have its figures. */
export type Observations = ReadonlyMap<Signal, Observation>;

/** How images, containers and the agent's directory share file systems. */
export interface FileSystemLayout {
  /** Images are not on the file system of the agent's directory. */
  readonly hasImageFs: boolean;
  /** Writable layers of containers are not on the file system of images. */
  readonly isSplit: boolean;
}

export function isSignal(name: string): name is Signal {
  return Object.hasOwn(signals, name);
}

/** `Ki`, `Mi` for bytes; decimal for inodes, processes and less than a KiB. As Kubernetes prints quantities. */
export function formatAmount(amount: number, resource: StarvedResource): string {
  const isBytes = resource === "memory" || resource === "ephemeral-storage";
  const base = isBytes && amount >= 1024 ? 1024 : 1000;
  const units = base === 1024 ? ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] : ["", "k", "M", "G", "T", "P", "E"];
  let unit = 0;
  let rest = amount;
  for (; rest !== 0 && rest % base === 0 && unit < units.length - 1; unit++) rest /= base;
  return `${rest}${units[unit]}`;
}
