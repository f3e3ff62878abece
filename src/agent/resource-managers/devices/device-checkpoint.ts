/** The devices of containers, kept in `kubelet_internal_checkpoint` in kubelet's format. */
import {
  CORRUPT,
  fnv32a,
  isRecord,
  parseStateJson,
  printGoMap,
  printGoSlice,
  readStateFile,
  sortedEntries,
  writeStateFile,
} from "../state-file.ts";

/** Devices of one resource that a container has. */
export interface DeviceEntry {
  readonly uid: string;
  readonly container: string;
  readonly resource: string;
  /** By NUMA node; -1 for devices without one. */
  readonly devices: ReadonlyMap<number, readonly string[]>;
  /** The plugin's encoded `ContainerAllocateResponse`. */
  readonly response: Uint8Array;
}

export interface DeviceCheckpoint {
  readonly entries: readonly DeviceEntry[];
  /** By resource: the healthy devices. */
  readonly registered: Readonly<Record<string, readonly string[]>>;
}

/** Undefined when there is no file. Rejects for a damaged one. */
export async function readDeviceCheckpoint(path: string): Promise<DeviceCheckpoint | undefined> {
  const text = await readStateFile(path);
  return text === undefined ? undefined : parseCheckpoint(text);
}

export async function writeDeviceCheckpoint(path: string, checkpoint: DeviceCheckpoint): Promise<void> {
  const entries = checkpoint.entries.map(({ uid, container, resource, devices, response }) => ({
    PodUID: uid,
    ContainerName: container,
    ResourceName: resource,
    DeviceIDs: Object.fromEntries(devices),
    AllocResp: Buffer.from(response).toString("base64"),
  }));
  const registered = Object.fromEntries(sortedEntries(checkpoint.registered));
  const data = { PodDeviceEntries: entries.length === 0 ? null : entries, RegisteredDevices: registered };
  await writeStateFile(path, JSON.stringify({ Data: data, Checksum: computeChecksum(checkpoint) }));
}

/** The checksum of the struct as kubelet prints it. */
function computeChecksum({ entries, registered }: DeviceCheckpoint): number {
  const fields = [
    `PodDeviceEntries:([]checkpoint.PodDevicesEntry)${printGoSlice(entries.length === 0 ? undefined : entries, printEntry)}`,
    `RegisteredDevices:(map[string][]string)${printGoMap(registered, (ids) => printGoSlice(ids))}`,
  ];
  return fnv32a(`(checkpoint.checkpointData){${fields.join(" ")}}`);
}

function printEntry({ uid, container, resource, devices, response }: DeviceEntry): string {
  const nodes = [...devices].sort(([a], [b]) => a - b).map(([node, ids]) => `${node}:${printGoSlice(ids)}`);
  const fields = [
    `PodUID:(string)${uid}`,
    `ContainerName:(string)${container}`,
    `ResourceName:(string)${resource}`,
    `DeviceIDs:(checkpoint.DevicesPerNUMA)map[${nodes.join(" ")}]`,
    `AllocResp:([]uint8)${printGoSlice([...response])}`,
  ];
  return `{${fields.join(" ")}}`;
}

function parseCheckpoint(text: string): DeviceCheckpoint {
  const { Data: data, Checksum: checksum } = parseStateJson(text);
  if (!isRecord(data)) throw new Error(CORRUPT);
  const list: readonly unknown[] = Array.isArray(data.PodDeviceEntries) ? data.PodDeviceEntries : [];
  const registered = isRecord(data.RegisteredDevices) ? data.RegisteredDevices : {};
  const checkpoint = {
    entries: list.map(parseEntry),
    registered: Object.fromEntries(Object.entries(registered).map(([name, ids]) => [name, toStrings(ids)] as const)),
  };
  if (checksum !== computeChecksum(checkpoint)) throw new Error(CORRUPT);
  return checkpoint;
}

function parseEntry(json: unknown): DeviceEntry {
  if (!isRecord(json) || !isRecord(json.DeviceIDs)) throw new Error(CORRUPT);
  const devices = Object.entries(json.DeviceIDs).map(([node, ids]) => [Number(node), toStrings(ids)] as const);
  return {
    uid: String(json.PodUID ?? ""),
    container: String(json.ContainerName ?? ""),
    resource: String(json.ResourceName ?? ""),
    devices: new Map(devices),
    response: Buffer.from(String(json.AllocResp ?? ""), "base64"),
  };
}

function toStrings(json: unknown): readonly string[] {
  if (json === null) return [];
  if (!Array.isArray(json)) throw new Error(CORRUPT);
  return json.map(String);
}
