/** The file systems of the agent's and the API server's directories. */
import { dirname } from "node:path";
import { computeThreshold } from "../node/status/capacity.ts";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { FileSystem, HostReader } from "./host-reader.ts";
import type { DirectorySubject } from "./subject.ts";

export interface DirectoryFacts {
  /** The directory, or the closest one above that exists; undefined: a file is in the way. */
  readonly existing: string | undefined;
  readonly fs: FileSystem | undefined;
  /** `ext4`; empty: unknown. */
  readonly type: string;
  readonly isReadOnly: boolean;
  readonly mayWrite: boolean;
}

const MIB = 2 ** 20;
const FULL_BYTES = 64 * MIB;
/** The store reserves a third of what is above 16 MiB, at least 4 MiB: see `Space`. */
const RESERVE_FREE_BYTES = 28 * MIB;
const volatileTypes = new Set(["tmpfs", "ramfs"]);
const remoteTypes = new Set(["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"]);

export function checkDirectory(subject: DirectorySubject, facts: DirectoryFacts): readonly Finding[] {
  const where = `${subject.flag} ${subject.path}`;
  const { existing, fs, isReadOnly, mayWrite } = facts;
  if (existing === undefined || fs === undefined) {
    return [finding("disk-present", "error", `${where}: not a directory, or cannot be read`)];
  }
  const writable = isReadOnly
    ? `${where}: its file system is mounted read-only`
    : mayWrite
      ? undefined
      : `${where}: ${existing} cannot be written`;
  const made = existing === subject.path ? where : `${where}: created at the start, in ${existing}`;
  return [
    finding("disk-present", "ok", made),
    findingOf("disk-writable", where, writable),
    checkSpace(subject, fs, where),
    ...checkInodes(subject, fs, where),
    checkType(subject, facts, where),
    ...checkReserve(subject, fs, where),
  ];
}

function checkSpace({ space }: DirectorySubject, { totalBytes, availableBytes }: FileSystem, where: string): Finding {
  const threshold = computeThreshold(space, totalBytes);
  const found = `${where}: ${formatBytes(availableBytes)} of ${formatBytes(totalBytes)} free`;
  if (availableBytes < FULL_BYTES) return finding("disk-space", "error", found);
  const problem = availableBytes < threshold ? `${found}; the threshold is ${formatBytes(threshold)}` : undefined;
  return findingOf("disk-space", found, problem, "warning");
}

function checkInodes({ inodes }: DirectorySubject, fs: FileSystem, where: string): Finding[] {
  if (fs.inodes === 0) return [];
  const found = `${where}: ${fs.freeInodes} of ${fs.inodes} inodes free`;
  if (fs.freeInodes === 0) return [finding("disk-inodes", "error", found)];
  const threshold = computeThreshold(inodes, fs.inodes);
  return [
    findingOf(
      "disk-inodes",
      found,
      fs.freeInodes < threshold ? `${found}; the threshold is ${threshold}` : undefined,
      "warning",
    ),
  ];
}

function checkType({ hasStore }: DirectorySubject, { type }: DirectoryFacts, where: string): Finding {
  const found = `${where}: ${type === "" ? "unknown" : type}`;
  if (remoteTypes.has(type)) return finding("disk-type", hasStore ? "error" : "warning", found);
  return finding("disk-type", volatileTypes.has(type) ? "warning" : "ok", found);
}

function checkReserve({ hasStore }: DirectorySubject, { availableBytes }: FileSystem, where: string): Finding[] {
  if (!hasStore) return [];
  const problem = availableBytes < RESERVE_FREE_BYTES ? `${where}: ${formatBytes(availableBytes)} free` : undefined;
  return [findingOf("store-reserve", where, problem, "warning")];
}

function formatBytes(bytes: number): string {
  return bytes < 2 ** 30 ? `${Math.floor(bytes / MIB)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

export async function readDirectoryFacts(host: HostReader, path: string): Promise<DirectoryFacts> {
  const existing = await findExisting(host, path);
  if (existing === undefined) return { existing, fs: undefined, type: "", isReadOnly: false, mayWrite: false };
  const mount = findMount((await host.readText("/proc/self/mounts")) ?? "", existing);
  return {
    existing,
    fs: await host.statfs(existing),
    type: mount?.type ?? "",
    isReadOnly: mount?.options.includes("ro") ?? false,
    mayWrite: await host.allows(existing, "write"),
  };
}

/** Undefined when a file is in the way. */
async function findExisting(host: HostReader, path: string): Promise<string | undefined> {
  for (let at = path; ; at = dirname(at)) {
    const found = await host.stat(at);
    if (found !== undefined) return found.kind === "directory" ? at : undefined;
    if (at === dirname(at)) return undefined;
  }
}

/** The last of the mounts with the longest path above the directory, which hides others. */
function findMount(mounts: string, directory: string): { type: string; options: readonly string[] } | undefined {
  let best: { path: string; type: string; options: readonly string[] } | undefined;
  for (const line of mounts.split("\n")) {
    const [, escaped = "", type = "", options = ""] = line.split(" ");
    const path = escaped.replaceAll("\\040", " ");
    const isAbove = path === "/" || directory === path || directory.startsWith(`${path}/`);
    if (path === "" || !isAbove || path.length < (best?.path.length ?? 0)) continue;
    best = { path, type, options: options.split(",") };
  }
  return best;
}
