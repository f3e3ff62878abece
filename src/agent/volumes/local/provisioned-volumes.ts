/**
 * The directories of provisioned volumes: one for each persistent volume, below one root. The local path provisioner
 * requests and removes them through the agent's server.
 */
import { chmod, lstat, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../../std/fs/remove-tree.ts";
import type { Mounter } from "../mount/mounter.ts";
import type { ProjectQuotas } from "./project-quotas.ts";

export interface ProvisionedVolumesOptions {
  /** Absolute. Only root may enter it; containers get the directories in it as mounts. */
  readonly root: string;
  readonly mounter: Pick<Mounter, "listMountPoints">;
  /** Where pods' volumes are mounted. */
  readonly podsDir: string;
  readonly quotas: ProjectQuotas;
}

export interface ProvisionedVolume {
  readonly path: string;
  /** Whether the file system rejects writes beyond the size. */
  readonly isSizeEnforced: boolean;
}

/** The request cannot be fulfilled as it is, or not now. */
export class ProvisionedVolumeError extends Error {
  override readonly name = "ProvisionedVolumeError";
}

/** The names that provisioners give volumes: `pvc-` and the UID of the claim. */
const NAME = /^pvc-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export class ProvisionedVolumes {
  readonly #options: ProvisionedVolumesOptions;

  constructor(options: ProvisionedVolumesOptions) {
    this.#options = options;
  }

  /** Creates the directory unless it exists, and sets its size. */
  async ensure(name: string, sizeBytes: number): Promise<ProvisionedVolume> {
    const path = this.#pathOf(name);
    await mkdir(this.#options.root, { recursive: true, mode: 0o700 });
    if (!(await isDirectory(path))) {
      await mkdir(path);
      // Any user of a container may write; mkdir applies the umask.
      await chmod(path, 0o777);
    }
    return { path, isSizeEnforced: await this.#options.quotas.limit(path, sizeBytes) };
  }

  /** Removes the directory with its content; does nothing if it is gone. Rejects while a pod has it mounted. */
  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    const removed = join(this.#options.root, `.removed-${name}`);
    if (await isDirectory(path)) {
      await this.#checkUnused(name, path);
      await this.#options.quotas.clear(path);
      // A removal that is interrupted must not leave a volume with a part of its data.
      await rename(path, removed);
    }
    // Symbolic links in it are removed, not followed.
    await removeTree(removed);
  }

  #pathOf(name: string): string {
    if (!NAME.test(name))
      throw new ProvisionedVolumeError(`${JSON.stringify(name)} is no name of a provisioned volume`);
    return join(this.#options.root, name);
  }

  async #checkUnused(name: string, path: string): Promise<void> {
    const { mounter, podsDir } = this.#options;
    const [inside] = await mounter.listMountPoints(path);
    if (inside !== undefined) throw new ProvisionedVolumeError(`volume ${name} contains the mount point ${inside}`);
    const { dev, ino } = await lstat(path);
    for (const point of await mounter.listMountPoints(podsDir)) {
      const found = await lstat(point).catch(() => undefined);
      if (found?.dev !== dev || found.ino !== ino) continue;
      throw new ProvisionedVolumeError(`volume ${name} is mounted for a pod at ${point}`);
    }
  }
}

/** False if there is nothing. Rejects for anything else than a directory, symbolic links included. */
async function isDirectory(path: string): Promise<boolean> {
  try {
    if ((await lstat(path)).isDirectory()) return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  throw new ProvisionedVolumeError(`${path} is not a directory`);
}
