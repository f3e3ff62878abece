/**
 * What containers mount below the agent's root directory, such as CSI drivers, must reach the agent and other
 * containers. Where the machine's mounts are private, as without systemd, the directory is mounted on itself and
 * shared.
 */
import { execFile } from "node:child_process";
import { readFile, realpath } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import type { Logger } from "../../../std/log/logger.ts";
import { unescapeOctal } from "./mounter.ts";

export interface MountTools {
  /** The text of /proc/self/mountinfo. */
  readonly readMounts: () => Promise<string>;
  readonly run: (program: string, args: readonly string[]) => Promise<unknown>;
}

const execFileAsync = promisify(execFile);
const systemTools: MountTools = {
  readMounts: () => readFile("/proc/self/mountinfo", "utf8"),
  run: (program, args) => execFileAsync(program, [...args]),
};

/** Disposal removes the mount unless something is mounted below it. Does not reject when mounting is not allowed. */
export async function shareMounts(
  directory: string,
  log: Logger,
  tools: MountTools = systemTools,
): Promise<AsyncDisposable> {
  const path = await realpath(directory);
  try {
    await share(path, tools);
  } catch (error) {
    log.warn("Mounts of containers below the root directory do not reach others", { path, error: String(error) });
  }
  return {
    async [Symbol.asyncDispose]() {
      await unshare(path, tools).catch((error: unknown) =>
        log.warn("Failed to unmount the root directory", { path, error: String(error) }),
      );
    },
  };
}

async function share(path: string, { readMounts, run }: MountTools): Promise<void> {
  const mounts = parseMounts(await readMounts());
  // Of several mounts at one point the last is visible.
  const above = mounts.filter(({ point }) => point === "/" || path === point || path.startsWith(`${point}/`));
  const longest = Math.max(...above.map(({ point }) => point.length));
  const mount = above.findLast(({ point }) => point.length === longest);
  if (mount === undefined || mount.isShared) return;
  if (!isOwnMount(mount, path, mounts)) {
    const below = mounts.find(({ point }) => point.startsWith(`${path}/`));
    if (below !== undefined) throw new Error(`${below.point} is mounted already, and would be hidden`);
    await run("mount", ["--bind", path, path]);
  }
  await run("mount", ["--make-rshared", path]);
}

async function unshare(path: string, { readMounts, run }: MountTools): Promise<void> {
  const mounts = parseMounts(await readMounts());
  const isOwn = mounts.some((mount) => isOwnMount(mount, path, mounts));
  if (!isOwn || mounts.some(({ point }) => point.startsWith(`${path}/`))) return;
  // A process may still have files open.
  await run("umount", ["--lazy", path]);
}

interface Mount {
  readonly id: string;
  readonly parent: string;
  readonly device: string;
  /** The directory of the file system that is mounted. */
  readonly root: string;
  readonly point: string;
  readonly isShared: boolean;
}

function parseMounts(table: string): readonly Mount[] {
  return table
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [id = "", parent = "", device = "", root = "", point = "", , ...rest] = line.split(" ");
      const optional = rest.slice(0, rest.indexOf("-"));
      const isShared = optional.some((field) => field.startsWith("shared:"));
      return { id, parent, device, root: unescapeOctal(root), point: unescapeOctal(point), isShared };
    });
}

/** Whether the directory is mounted on itself. */
function isOwnMount({ parent, device, root, point }: Mount, path: string, mounts: readonly Mount[]): boolean {
  const around = mounts.find(({ id }) => id === parent);
  return point === path && around?.device === device && root === join(around.root, relative(around.point, path));
}
