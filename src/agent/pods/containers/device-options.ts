/** Merges what device plugins set for the devices of a container to CRI's fields. */
import type { ContainerAllocateResponse } from "../../resource-managers/devices/messages.ts";
import type { CDIDevice, Device, Mount } from "../../runtime/cri/shared.ts";

export interface DeviceOptions {
  readonly envs: ReadonlyMap<string, string>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly Device[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly cdiDevices: readonly CDIDevice[];
}

/** `claimDevices` are names of CDI. The first plugin that sets a variable or a path wins, as in Kubernetes. */
export function mergeDevices(
  responses: readonly ContainerAllocateResponse[],
  claimDevices: readonly string[],
): DeviceOptions {
  const envs = new Map<string, string>();
  const mounts = new Map<string, Mount>();
  const devices = new Map<string, Device>();
  const annotations = new Map<string, string>();
  const cdiDevices = new Map<string, CDIDevice>();
  for (const name of claimDevices) setOnce(cdiDevices, name, { name });
  for (const response of responses) {
    for (const [name, value] of Object.entries(response.envs ?? {})) setOnce(envs, name, value);
    for (const { containerPath = "", hostPath = "", readOnly = false } of response.mounts ?? []) {
      setOnce(mounts, containerPath, { containerPath, hostPath, readonly: readOnly });
    }
    for (const { containerPath = "", hostPath = "", permissions = "" } of response.devices ?? []) {
      setOnce(devices, containerPath, { containerPath, hostPath, permissions });
    }
    for (const [name, value] of Object.entries(response.annotations ?? {})) setOnce(annotations, name, value);
    for (const { name = "" } of response.cdiDevices ?? []) setOnce(cdiDevices, name, { name });
  }
  return {
    envs,
    mounts: [...mounts.values()],
    devices: [...devices.values()],
    annotations: Object.fromEntries(annotations),
    cdiDevices: [...cdiDevices.values()],
  };
}

function setOnce<T>(map: Map<string, T>, key: string, value: T): void {
  if (!map.has(key)) map.set(key, value);
}
