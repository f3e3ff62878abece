/** Removes files of pods that an agent left when it was killed while it terminated them. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import { type Directories, podsDir } from "./directories.ts";
import type { PodCgroups } from "./resources/pod-cgroups.ts";

export interface OrphanedPodFiles {
  readonly directories: Directories;
  readonly volumes: Pick<VolumeManager, "tearDown">;
  readonly cgroups: Pick<PodCgroups, "remove">;
  /** Whether a worker manages the pod. */
  readonly hasWorker: (uid: string) => boolean;
}

/** Rejects with the first failure; the next call tries again. */
export async function removeOrphanedPodFiles({
  directories,
  volumes,
  cgroups,
  hasWorker: isKnown,
}: OrphanedPodFiles): Promise<void> {
  for (const uid of await listDirectory(podsDir(directories))) {
    if (isKnown(uid)) continue;
    await cgroups.remove(uid);
    await volumes.tearDown(uid);
  }
  for (const name of await listDirectory(directories.podLogsDir)) {
    const uid = podUidOf(name);
    if (uid !== undefined && !isKnown(uid)) {
      await rm(join(directories.podLogsDir, name), { recursive: true, force: true });
    }
  }
}

/** Of a directory `<namespace>_<name>_<uid>`; namespace and name contain no underscore. */
function podUidOf(name: string): string | undefined {
  const [, , uid, ...more] = name.split("_");
  return more.length === 0 ? uid : undefined;
}

function listDirectory(path: string): Promise<readonly string[]> {
  return readdir(path).catch(() => []);
}
