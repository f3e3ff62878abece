/** What `fsGroup` does to a volume. */
import { chmod, lchown, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../api/core/pod.ts";
import type { Clock } from "../../std/clock.ts";
import type { PodEvents } from "../pods/pod-events.ts";
import { podUid } from "../pods/pod-fields.ts";

const READ_WRITE = 0o660;
const READ = 0o440;
const DIRECTORY = 0o2110;

const SLOW_MS = 30_000;
const PROGRESS_MS = 60_000;
const ADVICE =
  "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/" +
  "#configure-volume-permission-and-ownership-change-policy-for-pods";

/** Who waits for a volume's files. */
export interface Waiting {
  readonly pod: Pod;
  /** The volume's. */
  readonly name: string;
  readonly clock: Clock;
  readonly events: Pick<PodEvents, "pod">;
}

interface Count {
  files: number;
}

export interface GroupRights {
  readonly group: number;
  /** What the agent writes itself, the group only reads. */
  readonly readOnly: boolean;
}

/**
 * The group owns all that is in the volume, may read it and, unless `readOnly`, write it; what is made in a directory
 * later is the group's too. Links are given away, and not followed.
 */
export async function giveToGroup(path: string, rights: GroupRights, count?: Count): Promise<void> {
  if (count !== undefined) count.files += 1;
  const stats = await lstat(path);
  await lchown(path, -1, rights.group);
  if (stats.isSymbolicLink()) return;
  await chmod(path, (stats.mode & 0o7777) | bits(rights, stats.isDirectory()));
  if (!stats.isDirectory()) return;
  for (const name of await readdir(path)) await giveToGroup(join(path, name), rights, count);
}

/** `giveToGroup` for a volume that others fill, and that may be large: says so as long as the pod waits for it. */
export async function giveVolume(path: string, rights: GroupRights, waiting: Waiting): Promise<void> {
  const count = { files: 0 };
  await tellOfDelay(giveToGroup(path, rights, count), count, waiting);
}

/** Says how far the change is, after a while and then again and again, until it has ended. */
export async function tellOfDelay(change: Promise<void>, count: Count, waiting: Waiting): Promise<void> {
  const { pod, name, clock, events } = waiting;
  const say = (text: string): void => {
    const message = `Setting volume ownership for ${podUid(pod)}/volumes/${name} ${text}`;
    events.pod(pod, "Warning", "VolumePermissionChangeInProgress", message);
    timer = clock.timer(PROGRESS_MS, () => say(`is in progress, processed ${count.files} files.`));
  };
  let timer = clock.timer(SLOW_MS, () =>
    say(`is taking longer than expected, consider using OnRootMismatch - ${ADVICE}`),
  );
  await change.finally(() => timer.cancel());
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
