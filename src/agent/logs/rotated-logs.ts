/**
 * Files of a container's log: the current one, `0.log`, and those that were rotated, `0.log.20261121-033207`, which are
 * compressed later, `0.log.20261121-033207.gz`. Names sort by age.
 */
import { readdir, readlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export const COMPRESSED = ".gz";
export const UNFINISHED = ".tmp";

const STAMP = /^\.(\d{8}-\d{6})(\.gz)?$/;
const DELETED = " (deleted)";

export interface RotatedLog {
  readonly path: string;
  /** When it was rotated, in UTC: `20261121-033207`. */
  readonly stamp: string;
  readonly compressed: boolean;
}

/** Oldest first. A log whose compression has just ended is listed once. */
export async function listRotatedLogs(path: string): Promise<readonly RotatedLog[]> {
  const logs: RotatedLog[] = [];
  for (const name of await listSuffixedNames(path)) {
    const [, stamp, compressed] = STAMP.exec(name.slice(basename(path).length)) ?? [];
    if (stamp === undefined || logs.at(-1)?.stamp === stamp) continue;
    logs.push({ path: join(dirname(path), name), stamp, compressed: compressed !== undefined });
  }
  return logs;
}

/** All names that start with the log's and a dot, sorted. */
export async function listSuffixedNames(path: string): Promise<readonly string[]> {
  const names = await readdir(dirname(path)).catch(() => []);
  return names.filter((name) => name.startsWith(`${basename(path)}.`)).sort();
}

/**
 * The stamp that the open file got when it was rotated; undefined when its name is another. A file that was compressed
 * or removed meanwhile keeps its last name.
 */
export async function readStamp(descriptor: number, path: string): Promise<string | undefined> {
  const found = await readlink(`/proc/self/fd/${descriptor}`);
  const name = found.endsWith(DELETED) ? found.slice(0, -DELETED.length) : found;
  return STAMP.exec(basename(name).slice(basename(path).length))?.[1];
}

/** A stamp for the time, in milliseconds since 1970, later than `last` by at least a second. */
export function makeStamp(now: number, last: string | undefined): string {
  const stamp = formatStamp(now);
  return last === undefined || stamp > last ? stamp : formatStamp(parseStamp(last) + 1000);
}

function formatStamp(time: number): string {
  return new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
}

function parseStamp(stamp: string): number {
  const [, date, time] = /^(\d{8})-(\d{6})$/.exec(stamp) ?? [];
  const dashed = date?.replace(/(....)(..)(..)/, "$1-$2-$3");
  const parsed = Date.parse(`${dashed}T${time?.replace(/(..)(..)(..)/, "$1:$2:$3")}Z`);
  return Number.isNaN(parsed) ? 0 : parsed;
}
