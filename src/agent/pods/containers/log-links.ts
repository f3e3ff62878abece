/**
 * `/var/log/containers`: a link to the log of each container by pod, namespace and container, which collectors of logs
 * read: `web_default_c-<id>.log`.
 */
import { mkdir, readdir, readlink, stat, symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { podName, podNamespace } from "../pod-fields.ts";

const SUFFIX = ".log";
const FILE_NAME_MAX = 255;

/** As in Kubernetes, longer names are cut. */
export function logLinkName(pod: Pod, container: string, id: string): string {
  const name = `${podName(pod)}_${podNamespace(pod)}_${container}-${id}`;
  return `${name.slice(0, FILE_NAME_MAX - SUFFIX.length)}${SUFFIX}`;
}

/** Replaces no link that exists. */
export async function linkLog(directory: string, name: string, target: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await symlink(target, join(directory, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

/** Removes links into `podLogsDir` whose log is gone; links of other programs stay. */
export async function removeDanglingLinks(directory: string, podLogsDir: string): Promise<void> {
  const names = await readdir(directory).catch((): string[] => []);
  for (const name of names.filter((each) => each.endsWith(SUFFIX))) {
    const path = join(directory, name);
    const target = await readlink(path).catch(() => "");
    if (!target.startsWith(`${podLogsDir}/`)) continue;
    const isGone = await stat(path).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === "ENOENT",
    );
    if (isGone) await unlink(path);
  }
}
