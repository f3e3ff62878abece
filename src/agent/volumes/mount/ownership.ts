/** Applies `fsGroup` to volumes. */
import { constants } from "node:fs";
import { chmod, chown, lchown, lstat, open, opendir, readdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { PodEventRecorder } from "../../pods/pod-events.ts";
import { podUid } from "../../pods/pod-fields.ts";

const READ_WRITE = 0o660;
const READ = 0o440;
const DIRECTORY = 0o2110;
/** Linux' O_PATH: a handle on any file, also a socket or a symbolic link, without opening it for reading. */
const OPEN_PATH = 0o10000000 | constants.O_NOFOLLOW;
/** Each level keeps a file descriptor open. */
const DEPTH_MAX = 500;
/** A pod may have created a million files; a directory of this size has about 50,000, which are read at once. */
const LARGE_DIRECTORY_BYTES = 2 ** 20;

const SLOW_MS = 30_000;
const PROGRESS_MS = 60_000;
const DOCS_URL =
  "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/" +
  "#configure-volume-permission-and-ownership-change-policy-for-pods";

/** The volume of a pod whose progress events report. */
export interface ProgressTarget {
  readonly pod: Pod;
  /** Name of the volume. */
  readonly name: string;
  readonly clock: Clock;
  readonly events: Pick<PodEventRecorder, "recordPodEvent">;
}

interface ProgressCount {
  files: number;
}

export interface FsGroupAccess {
  readonly group: number;
  /** The group may only read files that the agent writes. */
  readonly readOnly: boolean;
}

/**
 * Gives all files of the volume to the group, which may read and, unless `readOnly`, write them; new files in its
 * directories get the group too (setgid). Never follows symbolic links, also when a pod that has mounted the volume
 * replaces a file by one meanwhile: every file is opened through the handle of its directory.
 */
export async function applyFsGroup(path: string, rights: FsGroupAccess, count?: ProgressCount): Promise<void> {
  await applyToEntry(path, { rights, count, depth: 0 });
}

interface Walk {
  readonly rights: FsGroupAccess;
  readonly count: ProgressCount | undefined;
  readonly depth: number;
}

async function applyToEntry(path: string, { rights, count, depth }: Walk): Promise<void> {
  if (depth > DEPTH_MAX) throw new Error(`directories are nested deeper than ${DEPTH_MAX}`);
  if (count !== undefined) count.files += 1;
  await using entry = await open(path, OPEN_PATH);
  const stats = await entry.stat();
  if (stats.isSymbolicLink()) return await lchown(path, -1, rights.group);
  const held = `/proc/self/fd/${entry.fd}`;
  await chown(held, -1, rights.group);
  await chmod(held, (stats.mode & 0o7777) | modeBits(rights, stats.isDirectory()));
  if (!stats.isDirectory()) return;
  const next = { rights, count, depth: depth + 1 };
  if (stats.size > LARGE_DIRECTORY_BYTES) {
    for await (const { name } of await opendir(held)) await applyToEntry(`${held}/${name}`, next);
  } else for (const name of await readdir(held)) await applyToEntry(`${held}/${name}`, next);
}

/** `applyFsGroup` for volumes that may be large: records events while the pod waits. */
export async function applyFsGroupToVolume(
  path: string,
  rights: FsGroupAccess,
  waiting: ProgressTarget,
): Promise<void> {
  const count = { files: 0 };
  await reportProgress(applyFsGroup(path, rights, count), count, waiting);
}

/** Records events about the progress of the change: the first after 30 s, then every minute. */
export async function reportProgress(
  change: Promise<void>,
  count: ProgressCount,
  waiting: ProgressTarget,
): Promise<void> {
  const { pod, name, clock, events } = waiting;
  const record = (text: string): void => {
    const message = `Setting volume ownership for ${podUid(pod)}/volumes/${name} ${text}`;
    events.recordPodEvent(pod, "Warning", "VolumePermissionChangeInProgress", message);
    timer = clock.timer(PROGRESS_MS, () => record(`is in progress, processed ${count.files} files.`));
  };
  let timer = clock.timer(SLOW_MS, () =>
    record(`is taking longer than expected, consider using OnRootMismatch - ${DOCS_URL}`),
  );
  await change.finally(() => timer.cancel());
}

/** Whether the volume's root has group and mode already; enough for `fsGroupChangePolicy: OnRootMismatch`. */
export async function hasFsGroup(path: string, rights: FsGroupAccess): Promise<boolean> {
  const stats = await lstat(path);
  const wanted = modeBits(rights, true);
  return stats.gid === rights.group && (stats.mode & wanted) === wanted;
}

function modeBits({ readOnly }: FsGroupAccess, isDirectory: boolean): number {
  return (readOnly ? READ : READ_WRITE) | (isDirectory ? DIRECTORY : 0);
}
