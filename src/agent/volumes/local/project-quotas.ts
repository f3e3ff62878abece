/**
 * Sizes of directories, enforced by project quotas where the file system has them enabled (mount option `prjquota` of
 * ext4 and XFS) and their tools are installed.
 */
import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";

export interface ProjectQuotas {
  /** Resolves with whether the size is enforced. */
  limit(directory: string, sizeBytes: number): Promise<boolean>;
  /** Call before the directory is removed. */
  clear(directory: string): Promise<void>;
}

export interface ProjectQuotaTools {
  /** The text of /proc/self/mountinfo. */
  readonly readMounts: () => Promise<string>;
  /** Rejects when the program is not installed or fails. */
  readonly run: (program: string, args: readonly string[]) => Promise<void>;
  /** The number of the directory's inode. */
  readonly inodeOf: (directory: string) => Promise<number>;
  /** The reason why a size is not enforced, where quotas are enabled. */
  readonly onFailure: (directory: string, error: unknown) => void;
}

const TIMEOUT_MS = 30_000;
/** Project identifiers are 32-bit numbers; 0 is no project. */
const PROJECT_MAX = 2 ** 32 - 1;

const execFileAsync = promisify(execFile);

export const systemTools: Omit<ProjectQuotaTools, "onFailure"> = {
  readMounts: () => readFile("/proc/self/mountinfo", "utf8"),
  run: async (program, args) => void (await execFileAsync(program, [...args], { timeout: TIMEOUT_MS })),
  inodeOf: async (directory) => (await stat(directory)).ino,
};

interface QuotaMount {
  readonly point: string;
  readonly type: "xfs" | "ext4";
}

export function createProjectQuotas(tools: ProjectQuotaTools): ProjectQuotas {
  return {
    async limit(directory, sizeBytes) {
      const mount = findQuotaMount(await tools.readMounts(), directory);
      if (mount === undefined) return false;
      try {
        await setLimit(tools, mount, directory, Math.ceil(sizeBytes / 1024));
        return true;
      } catch (error) {
        tools.onFailure(directory, error);
        return false;
      }
    },
    async clear(directory) {
      const mount = findQuotaMount(await tools.readMounts(), directory);
      if (mount === undefined) return;
      await setLimit(tools, mount, directory, 0).catch((error: unknown) => tools.onFailure(directory, error));
    },
  };
}

/** The mount that contains the directory, if project quotas are enabled on it. */
function findQuotaMount(table: string, directory: string): QuotaMount | undefined {
  let best: { readonly point: string; readonly fields: readonly string[] } | undefined;
  for (const line of table.split("\n")) {
    const fields = line.split(" ");
    const point = fields[4] ?? "";
    const isAbove = point === "/" || directory === point || directory.startsWith(`${point}/`);
    // Of two mounts at one point the later one is visible.
    if (point !== "" && isAbove && point.length >= (best?.point.length ?? 0)) best = { point, fields };
  }
  if (best === undefined) return undefined;
  const [type, , options = ""] = best.fields.slice(best.fields.indexOf("-") + 1);
  const isEnabled = options.split(",").some((option) => option === "prjquota" || option === "pquota");
  return isEnabled && (type === "xfs" || type === "ext4") ? { point: best.point, type } : undefined;
}

/** The project is the inode of the directory: no other directory of the file system has it at the same time. */
async function setLimit(tools: ProjectQuotaTools, mount: QuotaMount, directory: string, kib: number): Promise<void> {
  const project = await tools.inodeOf(directory);
  if (project > PROJECT_MAX) throw new Error(`inode ${project} of ${directory} is no project identifier`);
  if (mount.type === "ext4") {
    await tools.run("chattr", ["-p", String(project), "+P", directory]);
    await tools.run("setquota", ["-P", String(project), "0", String(kib), "0", "0", mount.point]);
    return;
  }
  // The commands of xfs_quota are split at spaces.
  if (/[\s"]/.test(directory)) throw new Error(`xfs_quota cannot use the path ${JSON.stringify(directory)}`);
  const command = (text: string): Promise<void> => tools.run("xfs_quota", ["-x", "-c", text, mount.point]);
  await command(`project -s -p ${directory} ${project}`);
  await command(`limit -p bhard=${kib}k ${project}`);
}
