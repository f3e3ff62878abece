/** Removes files of pods that an agent left when it was killed while it terminated them. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../std/fs/remove-tree.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import { removeDanglingLinks } from "./containers/log-links.ts";
import { type Directories, podsDir } from "./directories.ts";
import type { PodCgroups } from "./resources/pod-cgroups.ts";

export interface OrphanedPodFiles {
  readonly directories: Directories;
  readonly volumes: Pick<VolumeManager, "tearDown">;
  readonly cgroups: Pick<PodCgroups, "remove">;
  /** Whether a worker manages the pod. */
  readonly hasWorker: (uid: string) => boolean;
}

export interface RemovedPodFiles {
  /** Messages of what could not be removed. */
  readonly problems: readonly string[];
  /** Pods whose volumes were removed, and those whose volumes could not be. */
  readonly volumesRemoved: number;
  readonly volumesFailed: number;
}

/** What could not be removed keeps nothing else from being removed; the next call tries again. */
export async function removeOrphanedPodFiles({
  directories,
  volumes,
  cgroups,
  hasWorker: isKnown,
}: OrphanedPodFiles): Promise<RemovedPodFiles> {
  const problems: string[] = [];
  let volumesRemoved = 0;
  let volumesFailed = 0;
  const attempt = async (remove: () => Promise<void>): Promise<boolean> => {
    try {
      await remove();
      return true;
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
      return false;
    }
  };
  for (const uid of await listDirectory(podsDir(directories))) {
    if (isKnown(uid)) continue;
    await attempt(() => cgroups.remove(uid));
    if (await attempt(() => volumes.tearDown(uid))) volumesRemoved++;
    else volumesFailed++;
  }
  for (const name of await listDirectory(directories.podLogsDir)) {
    const uid = podUidOf(name);
    if (uid !== undefined && !isKnown(uid)) {
      await attempt(() => removeTree(join(directories.podLogsDir, name)));
    }
  }
  const { containerLogsDir, podLogsDir } = directories;
  if (containerLogsDir !== undefined) await attempt(() => removeDanglingLinks(containerLogsDir, podLogsDir));
  return { problems, volumesRemoved, volumesFailed };
}

/** Of a directory `<namespace>_<name>_<uid>`; namespace and name contain no underscore. */
function podUidOf(name: string): string | undefined {
  const [, , uid, ...more] = name.split("_");
  return more.length === 0 ? uid : undefined;
}

function listDirectory(path: string): Promise<readonly string[]> {
  return readdir(path).catch(() => []);
}
