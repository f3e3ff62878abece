/** Volumes of NFS servers, which the machine's mount program mounts. */
import { execFile } from "node:child_process";
import { mkdir, rmdir } from "node:fs/promises";
import { isIPv6 } from "node:net";
import type { Volume } from "../../../api/core/volume/schema.ts";
import type { BoundClaim } from "../claims.ts";
import { isMounted } from "../local/empty-dir.ts";
import type { Mounter } from "../mount/mounter.ts";

export interface NfsVolume {
  /** Of the persistent volume, else the pod's volume. */
  readonly specName: string;
  /** `server:/export` */
  readonly source: string;
  /** In alphabetical order, as kubelet passes them. */
  readonly options: readonly string[];
}

/** A mount of a file system that is not on this machine. */
export interface RemoteMount {
  readonly type: string;
  readonly source: string;
  readonly target: string;
  readonly options: readonly string[];
}

export type MountRemote = (mount: RemoteMount, signal?: AbortSignal) => Promise<void>;

export interface NfsMountOptions {
  readonly mounter: Pick<Mounter, "listMountPoints" | "unmount">;
  /** Replaces the machine's mount program. */
  readonly mountRemote?: MountRemote | undefined;
}

/** Undefined for other volumes. Of a claim, only the pod decides whether it is read-only. */
export function toNfsVolume(volume: Volume, bound: BoundClaim | undefined): NfsVolume | undefined {
  const { metadata, spec } = bound?.volume ?? {};
  const nfs = bound === undefined ? volume.nfs : spec?.nfs;
  if (nfs === undefined) return undefined;
  const readOnly = bound === undefined ? volume.nfs?.readOnly : volume.persistentVolumeClaim?.readOnly;
  const options = new Set([...(spec?.mountOptions ?? []), ...(readOnly === true ? ["ro"] : [])]);
  return {
    specName: metadata?.name ?? volume.name,
    source: `${isIPv6(nfs.server) ? `[${nfs.server}]` : nfs.server}:${nfs.path}`,
    options: [...options].filter((option) => option !== "").sort(),
  };
}

/** Idempotent. Rejects with kubelet's text, and leaves no directory then. */
export async function mountNfs(
  { source, options }: NfsVolume,
  target: string,
  { mounter, mountRemote = runMount }: NfsMountOptions,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (await isMounted(mounter, target)) return;
  await mkdir(target, { recursive: true, mode: 0o750 });
  try {
    await mountRemote({ type: "nfs", source, target, options }, signal);
  } catch (error) {
    if (await isMounted(mounter, target)) await mounter.unmount(target);
    await rmdir(target).catch(() => undefined);
    throw error;
  }
}

/** The program may wait for a server for minutes; the signal ends it. */
async function runMount({ type, source, target, options }: RemoteMount, signal?: AbortSignal): Promise<void> {
  const flags = ["-t", type, ...(options.length === 0 ? [] : ["-o", options.join(",")])];
  await new Promise<void>((resolve, reject) => {
    // A server's name may begin with a dash.
    execFile("mount", [...flags, "--", source, target], { ...(signal && { signal }) }, (error, stdout, stderr) => {
      if (error === null) return resolve();
      const status = typeof error.code === "number" ? `exit status ${error.code}` : error.message;
      const command = `Mounting command: mount\nMounting arguments: ${[...flags, source, target].join(" ")}`;
      reject(new Error(`mount failed: ${status}\n${command}\nOutput: ${stdout}${stderr}`, { cause: error }));
    });
  });
}
