/** What `fsGroup` does to a volume. */
import { chmod, lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";

const READ_WRITE = 0o660;
const READ = 0o440;
const DIRECTORY = 0o2110;

export interface GroupRights {
  readonly group: number;
  /** What the agent writes itself, the group only reads. */
  readonly readOnly: boolean;
}

/**
 * The group owns all that is in the volume, may read it and, unless `readOnly`, write it; what is made in a directory
 * later is the group's too. Links are given away, and not followed.
 */
export async function giveToGroup(path: string, rights: GroupRights): Promise<void> {
  const stats = await lstat(path);
  await lchown(path, -1, rights.group);
  if (stats.isSymbolicLink()) return;
  await chmod(path, (stats.mode & 0o7777) | bits(rights, stats.isDirectory()));
  if (!stats.isDirectory()) return;
  for (const name of await readdir(path)) await giveToGroup(join(path, name), rights);
}

/** Whether the volume's root is as `giveToGroup` leaves it; `fsGroupChangePolicy: OnRootMismatch` looks no further. */
export async function belongsToGroup(path: string, rights: GroupRights): Promise<boolean> {
  const stats = await lstat(path);
  const wanted = bits(rights, true);
  return stats.gid === rights.group && (stats.mode & wanted) === wanted;
}

function bits({ readOnly }: GroupRights, isDirectory: boolean): number {
  return (readOnly ? READ : READ_WRITE) | (isDirectory ? DIRECTORY : 0);
}
