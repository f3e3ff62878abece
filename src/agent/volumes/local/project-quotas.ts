/**
 * Sizes of directories, enforced or measured by project quotas where the file system has them enabled (mount option
 * `prjquota` of ext4 and XFS) and their tools are installed.
 */
import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";
import type { Logger } from "../../../std/log/logger.ts";
import { type DirectorySize, measureDirectory } from "../../stats/directory-sizes.ts";

export interface ProjectQuotas {
  /** Resolves with whether the size is enforced. */
  limit(directory: string, sizeBytes: number): Promise<boolean>;
  /** Resolves with whether the size of an empty directory is counted from now on. */
  monitor(directory: string): Promise<boolean>;
  /** What is counted; undefined for a directory that is not monitored or limited. */
  readUsage(directory: string): Promise<DirectorySize | undefined>;
  /** Call before the directory is removed. */
  clear(directory: string): Promise<void>;
}

export interface ProjectQuotaTools {
  /** The text of /proc/self/mountinfo. */
  readonly readMounts: () => Promise<string>;
  /** Resolves with the output. Rejects when the program is not installed or fails. */
  readonly run: (program: string, args: readonly string[]) => Promise<string>;
  /** The number of the directory's inode. */
  readonly inodeOf: (directory: string) => Promise<number>;
  /** The reason why a size is not enforced or counted, where quotas are enabled. */
  readonly onFailure: (directory: string, error: unknown) => void;
}

const TIMEOUT_MS = 30_000;
/** Project identifiers are 32-bit numbers; 0 is no project. */
const PROJECT_MAX = 2 ** 32 - 1;

const execFileAsync = promisify(execFile);

export const systemTools: Omit<ProjectQuotaTools, "onFailure"> = {
  readMounts: () => readFile("/proc/self/mountinfo", "utf8"),
  run: async (program, args) => (await execFileAsync(program, [...args], { timeout: TIMEOUT_MS })).stdout,
  inodeOf: async (directory) => (await stat(directory)).ino,
};

/** Measures directories by what quotas count, and by their files where none does; undefined without quotas. */
export function createVolumeMeasure(
  quotas: ProjectQuotas | undefined,
): ((directory: string) => Promise<DirectorySize>) | undefined {
  return quotas && (async (directory) => (await quotas.readUsage(directory)) ?? (await measureDirectory(directory)));
}

/** For emptyDirs, whose files are read where a quota counts nothing. */
export function openMonitoringQuotas(log: Logger): ProjectQuotas {
  const onFailure = (directory: string, error: unknown): void =>
    log.v(2)?.info("Cannot use the project quota of a directory", { directory, error: String(error) });
  return createProjectQuotas({ ...systemTools, onFailure });
}

interface QuotaMount {
  readonly point: string;
  readonly type: "xfs" | "ext4";
}

export function createProjectQuotas(tools: ProjectQuotaTools): ProjectQuotas {
  /** Undefined where quotas are not enabled, and after a failure. */
  const run = async <T>(directory: string, work: (mount: QuotaMount) => Promise<T>): Promise<T | undefined> => {
    const mount = findQuotaMount(await tools.readMounts(), directory);
    if (mount === undefined) return undefined;
    try {
      return await work(mount);
    } catch (error) {
      tools.onFailure(directory, error);
      return undefined;
    }
  };
  return {
    limit: async (directory, sizeBytes) =>
      (await run(directory, async (mount) => {
        await setLimit(tools, mount, directory, Math.ceil(sizeBytes / 1024));
        return true;
      })) ?? false,
    monitor: async (directory) =>
      (await run(directory, async (mount) => {
        await assignProject(tools, mount, directory);
        return true;
      })) ?? false,
    readUsage: async (directory) =>
      await run(directory, async (mount) => {
        const project = await tools.inodeOf(directory);
        const [assigned] = (await tools.run("lsattr", ["-pd", directory])).trim().split(/\s+/);
        return assigned === String(project) ? await readUsage(tools, mount, project) : undefined;
      }),
    async clear(directory) {
      await run(directory, (mount) => setLimit(tools, mount, directory, 0));
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
async function assignProject(tools: ProjectQuotaTools, mount: QuotaMount, directory: string): Promise<number> {
  const project = await tools.inodeOf(directory);
  if (project > PROJECT_MAX) throw new Error(`inode ${project} of ${directory} is no project identifier`);
  if (mount.type === "ext4") {
    await tools.run("chattr", ["-p", String(project), "+P", directory]);
    return project;
  }
  // The commands of xfs_quota are split at spaces.
  if (/[\s"]/.test(directory)) throw new Error(`xfs_quota cannot use the path ${JSON.stringify(directory)}`);
  await runXfsQuota(tools, mount, `project -s -p ${directory} ${project}`);
  return project;
}

async function setLimit(tools: ProjectQuotaTools, mount: QuotaMount, directory: string, kib: number): Promise<void> {
  const project = await assignProject(tools, mount, directory);
  if (mount.type === "xfs") await runXfsQuota(tools, mount, `limit -p bhard=${kib}k ${project}`);
  else await tools.run("setquota", ["-P", String(project), "0", String(kib), "0", "0", mount.point]);
}

async function readUsage(tools: ProjectQuotaTools, mount: QuotaMount, project: number): Promise<DirectorySize> {
  if (mount.type === "xfs") {
    // `/dev/b 1024 0 0 00 [--------] /data`
    const read = async (what: string): Promise<number> =>
      parseField(await runXfsQuota(tools, mount, `quota -p -N -n -v -${what} ${project}`), 1);
    return { usedBytes: (await read("b")) * 1024, inodesUsed: await read("i") };
  }
  // `#77 -- 1024 0 0 5 0 0` among the lines of other projects.
  const report = await tools.run("repquota", ["-P", "-n", mount.point]);
  const line = report.split("\n").find((each) => each.startsWith(`#${project} `)) ?? "";
  return { usedBytes: parseField(line, 2) * 1024, inodesUsed: parseField(line, 5) };
}

/** A project without files may have no line. */
function parseField(line: string, position: number): number {
  if (line.trim() === "") return 0;
  const value = Number(line.trim().split(/\s+/)[position]);
  if (!Number.isSafeInteger(value)) throw new Error(`the report of a quota has no number: ${line.trim()}`);
  return value;
}

function runXfsQuota(tools: ProjectQuotaTools, mount: QuotaMount, command: string): Promise<string> {
  return tools.run("xfs_quota", ["-x", "-c", command, mount.point]);
}
