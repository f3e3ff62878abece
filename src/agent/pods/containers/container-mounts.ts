/** Converts volumeMounts to CRI mounts; pins sub-paths and writes the pod's hosts file. */
import { chmod, lstat, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Container, VolumeMount } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { makeDirectory } from "../../../std/fs/make-directory.ts";
import type { Device, Mount } from "../../runtime/cri/shared.ts";
import { systemSeLinux } from "../../volumes/mount/selinux.ts";
import { openSubPath } from "../../volumes/mount/sub-path.ts";
import { isReadOnly, isWrittenByAgent } from "../../volumes/volume-manager.ts";
import { hostsFile, podDir } from "../directories.ts";
import { expand } from "../environment/expansion.ts";
import type { PodContext } from "../pod-context.ts";
import { podUid } from "../pod-fields.ts";
import { makeHostsFile } from "../sandbox/dns.ts";
import { makeImageMount } from "./image-volumes.ts";
import { resolveRecursiveReadOnly } from "./recursive-read-only.ts";

const MOUNT_PROPAGATION = {
  None: "PROPAGATION_PRIVATE",
  HostToContainer: "PROPAGATION_HOST_TO_CONTAINER",
  Bidirectional: "PROPAGATION_BIDIRECTIONAL",
} as const;

export async function makeMounts(
  pod: PodContext,
  container: Container,
  environment: ReadonlyMap<string, string>,
  podIps: readonly string[],
): Promise<readonly Mount[]> {
  const mounts: Mount[] = [];
  const volumes = volumesByName(pod.pod);
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const volume = volumes.get(mount.name);
    if (volume === undefined)
      throw new Error(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
    if (volume.image !== undefined) {
      mounts.push(makeImageMount(pod, volume.image, mount, resolveSubPath(mount, environment)));
      continue;
    }
    const hostPath = await resolveHostPath(pod, container, volume, mount, environment, index);
    const contentOnly = isWrittenByAgent(volume) || isReadOnly(volume);
    mounts.push({
      containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
      hostPath,
      // Containers must not change files that the agent writes.
      readonly: mount.readOnly === true || contentOnly,
      recursiveReadOnly: await resolveRecursiveReadOnly(pod, mount),
      selinuxRelabel: needsRelabelling(pod, volume),
      propagation: MOUNT_PROPAGATION[mount.mountPropagation ?? "None"],
    });
  }
  if (!mounts.some((mount) => mount.containerPath === "/etc/hosts")) {
    mounts.push({ containerPath: "/etc/hosts", hostPath: await writeHostsFile(pod, podIps) });
  }
  return mounts;
}

/** A pod may have thousands of volumes and of mounts. */
function volumesByName({ spec }: Pod): ReadonlyMap<string, Volume> {
  return new Map((spec?.volumes ?? []).map((volume) => [volume.name, volume]));
}

/** Block volumes as devices of the container. */
export function makeDevices({ pod, services }: PodContext, container: Container): readonly Device[] {
  const volumes = volumesByName(pod);
  return (container.volumeDevices ?? []).map(({ name, devicePath: containerPath }) => {
    const hostPath = services.volumes.device(pod, name);
    if (hostPath === undefined) {
      throw new Error(`cannot find volume "${name}" to pass into container "${container.name}"`);
    }
    const volume = volumes.get(name);
    const permissions = volume?.persistentVolumeClaim?.readOnly === true ? "r" : "mrw";
    return { hostPath, containerPath, permissions };
  });
}

function needsRelabelling({ pod, services }: PodContext, volume: Volume): boolean {
  return volume.hostPath === undefined && systemSeLinux.isEnabled() && !services.volumes.isLabelled(pod, volume);
}

async function resolveHostPath(
  pod: PodContext,
  container: Container,
  volume: Volume,
  mount: VolumeMount,
  environment: ReadonlyMap<string, string>,
  index: number,
): Promise<string> {
  const path = pod.services.volumes.path(pod.pod, volume);
  const subPath = resolveSubPath(mount, environment);
  if (subPath === "") {
    // The runtime would create a missing directory too, but with another mode.
    if (volume.hostPath !== undefined) await makeDirectory(path, 0o777).catch(() => undefined);
    return path;
  }
  try {
    return await pinSubPath(pod, path, subPath, join(volume.name, container.name, String(index)));
  } catch (error) {
    pod.log.error("Failed to prepare subPath", error, { volume: volume.name, container: container.name });
    throw new Error(`failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}"`, {
      cause: error,
    });
  }
}

/** Throws with Kubernetes' texts. */
export function resolveSubPath(
  { subPath = "", subPathExpr = "" }: Pick<VolumeMount, "subPath" | "subPathExpr">,
  environment: ReadonlyMap<string, string>,
): string {
  const path = subPathExpr === "" ? subPath : expandStrictly(subPathExpr, environment);
  if (path.startsWith("/")) throw new Error(`error SubPath \`${path}\` must not be an absolute path`);
  if (path.split("/").includes("..")) throw new Error(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  return path;
}

/** An empty value counts as missing. */
function expandStrictly(text: string, environment: ReadonlyMap<string, string>): string {
  const missing = new Set<string>();
  const expanded = expand(text, (name) => {
    const value = environment.get(name) ?? "";
    if (value === "") missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(", ")}`);
  return expanded;
}

/**
 * Bind-mounts the verified sub-path to a path of the agent, so that users of the volume cannot replace it afterwards.
 */
async function pinSubPath(pod: PodContext, volume: string, subPath: string, name: string): Promise<string> {
  const { mounter, settings } = pod.services;
  const target = join(podDir(settings.directories, podUid(pod.pod)), "volume-subpaths", name);
  for (const point of await mounter.listMountPoints(target)) await mounter.unmount(point);
  const handle = await openSubPath(volume, subPath);
  try {
    await mkdir(dirname(target), { recursive: true, mode: 0o750 });
    const directory = (await handle.stat()).isDirectory();
    const found = await lstat(target).catch(() => undefined);
    if (found === undefined) await (directory ? mkdir(target) : writeFile(target, ""));
    await mounter.bind(`/proc/${process.pid}/fd/${handle.fd}`, target);
  } finally {
    await handle.close();
  }
  return target;
}

async function writeHostsFile(pod: PodContext, podIps: readonly string[]): Promise<string> {
  const { settings, readHostFile } = pod.services;
  const path = hostsFile(settings.directories, podUid(pod.pod));
  const host = pod.pod.spec?.hostNetwork === true ? await readHostFile("hosts") : "";
  await writeFile(path, makeHostsFile(pod.pod, settings.clusterDomain, podIps, host));
  // Every user in the containers reads it. At creation the process's umask clears mode bits.
  await chmod(path, 0o644);
  return path;
}
