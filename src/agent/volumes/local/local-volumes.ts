/** Persistent volumes on the node itself: directories, files and block devices. */
import { mkdir, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { type Directories, podsDir } from "../../pods/directories.ts";
import type { PodEventRecorder } from "../../pods/pod-events.ts";
import { resolveHostPath } from "../claims.ts";
import type { Mounter } from "../mount/mounter.ts";
import { applyFsGroupToVolume, hasFsGroup } from "../mount/ownership.ts";
import type { VolumePath } from "../volume-path.ts";
import { type DeviceMount, formatAndMount } from "./block-device.ts";

export interface LocalVolumeOptions {
  readonly directories: Directories;
  readonly mounter: Mounter;
  readonly clock: Clock;
  readonly events: Pick<PodEventRecorder, "recordPodEvent">;
  /** Replaces the machine's tools. */
  readonly formatAndMount?: (mount: DeviceMount) => Promise<void>;
}

export interface LocalVolumeRequest {
  readonly pod: Pod;
  readonly volume: Volume;
  readonly bound: PersistentVolume;
  /** The mount point. */
  readonly directory: string;
}

/** Returns the path of a block volume; mounts other volumes and returns undefined. */
export async function mountLocal(
  request: LocalVolumeRequest,
  options: LocalVolumeOptions,
): Promise<VolumePath | undefined> {
  const { bound, directory } = request;
  const path = await resolveHostPath(bound);
  if (bound.spec?.volumeMode === "Block") return { path, isBlock: true };
  const found = await stat(path);
  const { local, mountOptions = [] } = bound.spec ?? {};
  const isDevice = local !== undefined && found.isBlockDevice();
  if (isDevice || found.isDirectory()) await mkdir(directory, { recursive: true, mode: 0o750 });
  else {
    await mkdir(dirname(directory), { recursive: true, mode: 0o750 });
    await writeFile(directory, "");
  }
  if (isDevice) {
    const mount = options.formatAndMount ?? formatAndMount;
    await mount({ device: path, target: directory, fsType: local.fsType ?? "", options: mountOptions });
    await setOwnership(request, options, directory);
    return undefined;
  }
  // fsGroup does not apply to hostPath volumes.
  if (local !== undefined) await setSharedOwnership(request, options, path);
  await options.mounter.bind(path, directory);
  return undefined;
}

/** A volume that another pod has mounted keeps its group. */
async function setSharedOwnership(
  request: LocalVolumeRequest,
  options: LocalVolumeOptions,
  path: string,
): Promise<void> {
  const { pod, bound } = request;
  const group = pod.spec?.securityContext?.fsGroup;
  if (group === undefined) return;
  if (!(await isMountedByPod(path, options))) return await setOwnership(request, options, path);
  const { gid } = await stat(path);
  if (gid === group) return;
  const text =
    `The requested fsGroup is ${group}, but the volume ${bound.metadata?.name} has GID ${gid}. ` +
    "The volume may not be shareable.";
  options.events.recordPodEvent(pod, "Warning", "AlreadyMountedVolume", text);
}

/** Whether a pod has mounted the directory already. */
async function isMountedByPod(path: string, { mounter, directories }: LocalVolumeOptions): Promise<boolean> {
  const { dev, ino } = await stat(path);
  for (const point of await mounter.listMountPoints(podsDir(directories))) {
    const found = await stat(point).catch(() => undefined);
    if (found?.dev === dev && found.ino === ino) return true;
  }
  return false;
}

async function setOwnership(request: LocalVolumeRequest, options: LocalVolumeOptions, path: string): Promise<void> {
  const { pod, volume } = request;
  const { fsGroup: group, fsGroupChangePolicy: policy } = pod.spec?.securityContext ?? {};
  if (group === undefined || volume.persistentVolumeClaim?.readOnly === true) return;
  const rights = { group, readOnly: false };
  if (policy === "OnRootMismatch" && (await hasFsGroup(path, rights))) return;
  await applyFsGroupToVolume(path, rights, { ...options, pod, name: volume.name });
}
