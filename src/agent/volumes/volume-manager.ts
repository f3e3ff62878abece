/** Volumes of pods: set up before the first container, refreshed while it runs, gone after the last. */
import { chmod, chown, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../api/core/pod.ts";
import type { Volume } from "../../api/core/volume.ts";
import type { Clock } from "../../std/clock.ts";
import { bytes } from "../pods/amounts.ts";
import { type Directories, podDir, podsDir, volumeDir } from "../pods/directories.ts";
import type { NodeFacts } from "../pods/downward.ts";
import { appContainers, podUid } from "../pods/pod-fields.ts";
import { writeAtomically } from "./atomic-writer.ts";
import { checkHostPath } from "./host-path.ts";
import type { Mounter } from "./mounter.ts";
import {
  configMapPayload,
  downwardPayload,
  type Payload,
  type PayloadContext,
  projectedPayload,
  secretPayload,
  type VolumeObjects,
} from "./payload.ts";

export interface VolumeManagerOptions {
  readonly directories: Directories;
  readonly mounter: Mounter;
  readonly clock: Clock;
  readonly objects: VolumeObjects;
  readonly node: () => NodeFacts;
}

/** Of one volume: what to say in the FailedMount event. */
export class MountError extends Error {
  override readonly name = "MountError";
}

/** Sources the agent can provide; any other is refused by name. */
const supported = ["hostPath", "emptyDir", "configMap", "secret", "downwardAPI", "projected"] as const;

/** The source of a volume that cannot be provided; undefined when it can. */
export function unsupportedSource(volume: Volume): string | undefined {
  const sources = Object.keys(volume).filter((key) => key !== "name" && volume[key as keyof Volume] !== undefined);
  const unknown = sources.find((key) => !(supported as readonly string[]).includes(key));
  if (unknown !== undefined) return unknown;
  const tokens = (volume.projected?.sources ?? []).flatMap((source) => Object.keys(source));
  return tokens.find((key) => key === "serviceAccountToken" || key === "clusterTrustBundle");
}

export class VolumeManager {
  readonly #options: VolumeManagerOptions;

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
  }

  /** Sets every volume up; repeating it is harmless. Rejects with a `MountError` of the first volume that fails. */
  async setUp(pod: Pod, podIps: readonly string[]): Promise<void> {
    await mkdir(podDir(this.#options.directories, podUid(pod)), { recursive: true, mode: 0o750 });
    for (const volume of pod.spec?.volumes ?? []) {
      try {
        await this.#setUpOne(pod, volume, podIps);
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        throw new MountError(`MountVolume.SetUp failed for volume "${volume.name}" : ${text}`, { cause: error });
      }
    }
  }

  /** Brings changed ConfigMaps, Secrets and labels into running pods. */
  async refresh(pod: Pod, podIps: readonly string[]): Promise<void> {
    for (const volume of pod.spec?.volumes ?? []) {
      if (volume.emptyDir === undefined && volume.hostPath === undefined) await this.#setUpOne(pod, volume, podIps);
    }
  }

  /** Where the volume is on the host. */
  path(pod: Pod, volume: Volume): string {
    if (volume.hostPath !== undefined) return volume.hostPath.path;
    return volumeDir(this.#options.directories, podUid(pod), pluginOf(volume), volume.name);
  }

  /** Unmounts and removes all that is the pod's below the root directory. Harmless when there is nothing. */
  async tearDown(uid: string): Promise<void> {
    const directory = podDir(this.#options.directories, uid);
    for (const point of await this.#options.mounter.below(directory)) await this.#options.mounter.unmount(point);
    await rm(directory, { recursive: true, force: true });
  }

  /** Lets go of what pods keep mounted, without removing what is theirs on disk: they will be started again. */
  async unmountAll(): Promise<void> {
    const { mounter, directories } = this.#options;
    for (const point of await mounter.below(podsDir(directories))) await mounter.unmount(point);
  }

  async #setUpOne(pod: Pod, volume: Volume, podIps: readonly string[]): Promise<void> {
    if (volume.hostPath !== undefined) {
      await checkHostPath(volume.hostPath);
      return;
    }
    const directory = this.path(pod, volume);
    const group = pod.spec?.securityContext?.fsGroup;
    if (volume.emptyDir !== undefined) {
      await this.#emptyDir(pod, volume, directory, group);
      return;
    }
    const payload = await this.#payload(pod, volume, podIps);
    await mkdir(directory, { recursive: true, mode: 0o777 });
    await chmod(directory, 0o777);
    if (volume.configMap === undefined && volume.downwardAPI === undefined) await this.#inMemory(directory, 0);
    const { changed } = await writeAtomically(directory, payload, this.#options.clock.now());
    if (changed && group !== undefined) await giveToGroup(directory, group);
  }

  async #emptyDir(pod: Pod, volume: Volume, directory: string, group: number | undefined): Promise<void> {
    const medium = volume.emptyDir?.medium ?? "";
    if (medium !== "" && medium !== "Memory")
      throw new Error(`emptyDir medium "${medium}" is not supported by this agent`);
    const exists = (await lstat(directory).catch(() => undefined)) !== undefined;
    await mkdir(directory, { recursive: true, mode: 0o777 });
    if (medium === "Memory") await this.#inMemory(directory, memorySize(pod, volume));
    if (exists) return;
    await chmod(directory, 0o777);
    if (group !== undefined) await giveToGroup(directory, group);
  }

  async #inMemory(directory: string, sizeBytes: number): Promise<void> {
    const mounted = await this.#options.mounter.below(directory);
    if (!mounted.includes(directory)) {
      await this.#options.mounter.tmpfs(directory, sizeBytes);
      await chmod(directory, 0o777);
    }
  }

  async #payload(pod: Pod, volume: Volume, podIps: readonly string[]): Promise<Payload> {
    const context: PayloadContext = { pod, podIps, node: this.#options.node(), objects: this.#options.objects };
    if (volume.configMap !== undefined) return configMapPayload(context, volume.configMap);
    if (volume.secret !== undefined) return secretPayload(context, volume.secret);
    if (volume.projected !== undefined) return projectedPayload(context, volume.projected);
    if (volume.downwardAPI !== undefined) {
      return downwardPayload(context, volume.downwardAPI.items, volume.downwardAPI.defaultMode);
    }
    throw new Error(`volume source ${unsupportedSource(volume) ?? "(none)"} is not supported by this agent`);
  }
}

function pluginOf(volume: Volume): string {
  if (volume.emptyDir !== undefined) return "empty-dir";
  if (volume.configMap !== undefined) return "configmap";
  if (volume.secret !== undefined) return "secret";
  return volume.projected === undefined ? "downward-api" : "projected";
}

/** The volume's own limit, else the pod's memory limit, else the kernel's. */
function memorySize(pod: Pod, volume: Volume): number {
  const own = bytes(volume.emptyDir?.sizeLimit);
  if (own > 0) return own;
  const limits = appContainers(pod).map((container) => bytes(container.resources?.limits?.memory));
  return limits.includes(0) ? 0 : limits.reduce((sum, each) => sum + each, 0);
}

/** As Kubernetes does for fsGroup: the group owns everything, may read and write it, and directories pass it on. */
async function giveToGroup(path: string, group: number): Promise<void> {
  const stats = await lstat(path);
  if (stats.isSymbolicLink()) return;
  await chown(path, stats.uid, group);
  const execute = stats.isDirectory() ? 0o2110 : 0;
  await chmod(path, (stats.mode & 0o7777) | 0o660 | execute);
  if (!stats.isDirectory()) return;
  for (const name of await readdir(path)) await giveToGroup(join(path, name), group);
}
