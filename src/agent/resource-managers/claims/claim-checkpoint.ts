/** The prepared claims, kept in `dra_manager_state` in kubelet's format. */
import { crc32 } from "node:zlib";
import { CORRUPT, isRecord, parseStateJson, readStateFile, writeStateFile } from "../state-file.ts";
import type { DriverDevice } from "./messages.ts";

export interface ClaimState {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** Pods that use it. */
  readonly pods: ReadonlySet<string>;
  /** By driver; a driver that has not prepared it yet has no devices. */
  readonly drivers: ReadonlyMap<string, readonly DriverDevice[]>;
}

const KIND = "DRACheckpoint";
const API_VERSION = "checkpoint.dra.kubelet.k8s.io/v1";

/** Empty when there is no file. Rejects for one that is damaged or of another version. */
export async function readClaimCheckpoint(path: string): Promise<readonly ClaimState[]> {
  const text = await readStateFile(path);
  if (text === undefined) return [];
  const { Data: data, Checksum: checksum } = parseStateJson(text);
  if (typeof data !== "string" || checksum !== crc32(data)) throw new Error(CORRUPT);
  const { kind, apiVersion, ClaimInfoStateList: list } = parseStateJson(data);
  if (kind !== KIND || apiVersion !== API_VERSION) {
    throw new Error(`unknown checkpoint ${String(kind)} of version ${String(apiVersion)}`);
  }
  return Array.isArray(list) ? list.map(parseClaim) : [];
}

export async function writeClaimCheckpoint(path: string, claims: Iterable<ClaimState>): Promise<void> {
  const list = [...claims].map(({ uid, name, namespace, pods, drivers }) => ({
    ClaimUID: uid,
    ClaimName: name,
    Namespace: namespace,
    PodUIDs: Object.fromEntries([...pods].sort().map((pod) => [pod, {}])),
    DriverState: Object.fromEntries(
      [...drivers].map(([driver, devices]) => [driver, { Devices: printDevices(devices) }]),
    ),
  }));
  const data = JSON.stringify({ kind: KIND, apiVersion: API_VERSION, ClaimInfoStateList: list });
  await writeStateFile(path, JSON.stringify({ Data: data, Checksum: crc32(data) }));
}

function printDevices(devices: readonly DriverDevice[]): readonly object[] | null {
  if (devices.length === 0) return null;
  return devices.map(({ poolName = "", deviceName = "", requestNames = [], cdiDeviceIds = [] }) => ({
    PoolName: poolName,
    DeviceName: deviceName,
    RequestNames: requestNames,
    CDIDeviceIDs: cdiDeviceIds,
  }));
}

function parseClaim(json: unknown): ClaimState {
  if (!isRecord(json) || !isRecord(json.PodUIDs) || !isRecord(json.DriverState)) throw new Error(CORRUPT);
  const drivers = Object.entries(json.DriverState).map(([driver, state]) => {
    const devices: unknown = isRecord(state) ? state.Devices : undefined;
    return [driver, Array.isArray(devices) ? devices.map(parseDevice) : []] as const;
  });
  return {
    uid: String(json.ClaimUID ?? ""),
    name: String(json.ClaimName ?? ""),
    namespace: String(json.Namespace ?? ""),
    pods: new Set(Object.keys(json.PodUIDs)),
    drivers: new Map(drivers),
  };
}

function parseDevice(json: unknown): DriverDevice {
  if (!isRecord(json)) throw new Error(CORRUPT);
  const strings = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
  return {
    poolName: String(json.PoolName ?? ""),
    deviceName: String(json.DeviceName ?? ""),
    requestNames: strings(json.RequestNames),
    cdiDeviceIds: strings(json.CDIDeviceIDs),
  };
}
