/** The kernel's cgroups, v1 or v2, as one tree of paths: `/kubepods/burstable`. */
import { mkdir, readdir, readFile, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Absent limits stay unchanged; null removes a limit. */
export interface CgroupLimits {
  readonly cpuShares?: number;
  readonly cpuQuotaUs?: number | null;
  readonly cpuPeriodUs?: number;
  readonly memoryBytes?: number | null;
  /** Memory that the kernel does not reclaim; cgroup v2 only. */
  readonly memoryMinBytes?: number;
  readonly pids?: number;
  /** Bytes by page size in the kernel's format, `2MB`; null removes the limit. */
  readonly hugePages?: Readonly<Record<string, number | null>>;
}

const controllers = ["cpu", "memory", "pids", "hugetlb"] as const;

export class CgroupTree {
  /** Mount point of the cgroup file system: `/sys/fs/cgroup`. */
  readonly hierarchy: string;
  /** Read once: version and controllers do not change while the kernel runs. */
  #layout: Promise<Layout> | undefined;

  constructor(hierarchy: string) {
    this.hierarchy = hierarchy;
  }

  /** Whether the machine uses cgroup v2, which has one unified hierarchy. */
  async isUnified(): Promise<boolean> {
    return (await this.#readLayout()).isUnified;
  }

  /** Whether cgroup v2 limits swap on this machine: its files are in every cgroup but the root. */
  async limitsSwap(): Promise<boolean> {
    if (!(await this.isUnified())) return false;
    const names = await readdir(this.hierarchy).catch(() => []);
    const found = await Promise.all(names.map((name) => exists(join(this.hierarchy, name, "memory.swap.max"))));
    return found.includes(true);
  }

  /** Rejects when the kernel refuses. */
  async create(path: string): Promise<void> {
    if (!(await this.isUnified())) {
      for (const top of await this.#controllerRoots()) await mkdir(join(top, path), { recursive: true });
      return;
    }
    let directory = this.hierarchy;
    const available = await this.#readControllers();
    const enabled = controllers.filter((name) => available.includes(name)).map((name) => `+${name}`);
    for (const part of path.split("/").filter((each) => each !== "")) {
      await writeFile(join(directory, "cgroup.subtree_control"), enabled.join(" "));
      directory = join(directory, part);
      await mkdir(directory, { recursive: true });
    }
  }

  /** The directories of the cgroup that do not exist, one for each controller that the kernel has. */
  async findMissing(path: string): Promise<readonly string[]> {
    const paths = (await this.#controllerRoots()).map((top) => join(top, path));
    const found = await Promise.all(paths.map(isDirectory));
    return paths.filter((_, index) => !found[index]);
  }

  /** Sets limits of an existing cgroup. Limits of controllers that the kernel lacks are ignored. */
  async setLimits(path: string, limits: CgroupLimits): Promise<void> {
    for (const [controller, name, value] of (await this.isUnified()) ? v2Settings(limits) : v1Settings(limits)) {
      const top = await this.#controllerRoot(controller);
      if (top !== undefined) await writeFile(join(top, path, name), String(value));
    }
  }

  /** Moves a process into the cgroup, for every controller. */
  async addProcess(path: string, pid: number): Promise<void> {
    for (const top of await this.#controllerRoots()) await writeFile(join(top, path, "cgroup.procs"), String(pid));
  }

  /** The processes in the cgroup, without those of its children. */
  async readProcesses(path: string): Promise<readonly number[]> {
    const [top = this.hierarchy] = await this.#controllerRoots();
    const text = await readFile(join(top, path, "cgroup.procs"), "utf8");
    return text.split("\n").filter(Boolean).map(Number);
  }

  /** Directories of the cgroup: one per controller with v1, at most one with v2. */
  async findDirectories(path: string): Promise<readonly string[]> {
    const names = await readdir(this.hierarchy).catch(() => []);
    const paths = [this.hierarchy, ...names.map((name) => join(this.hierarchy, name))].map((top) => join(top, path));
    const found = await Promise.all(paths.map(isDirectory));
    return paths.filter((_, index) => found[index]);
  }

  /** Removes the cgroup and its children. Best effort: cgroups that are in use stay. */
  async remove(path: string): Promise<void> {
    const names = await readdir(this.hierarchy).catch(() => []);
    for (const top of [this.hierarchy, ...names.map((name) => join(this.hierarchy, name))]) {
      await removeWithChildren(join(top, path));
    }
  }

  /** The controllers of cgroup v2. */
  async #readControllers(): Promise<readonly string[]> {
    return (await readFile(join(this.hierarchy, "cgroup.controllers"), "utf8")).split(/\s+/);
  }

  async #controllerRoots(): Promise<readonly string[]> {
    if (await this.isUnified()) return [this.hierarchy];
    return [...(await this.#readLayout()).roots.values()];
  }

  async #controllerRoot(controller: (typeof controllers)[number]): Promise<string | undefined> {
    if (await this.isUnified())
      return (await this.#readControllers()).includes(controller) ? this.hierarchy : undefined;
    return (await this.#readLayout()).roots.get(controller);
  }

  #readLayout(): Promise<Layout> {
    this.#layout ??= detectLayout(this.hierarchy);
    return this.#layout;
  }
}

interface Layout {
  readonly isUnified: boolean;
  /** With v1: the directory of each controller. */
  readonly roots: ReadonlyMap<string, string>;
}

async function detectLayout(hierarchy: string): Promise<Layout> {
  const isUnified = await exists(join(hierarchy, "cgroup.controllers"));
  const roots = controllers.map((name) => [name, join(hierarchy, name)] as const);
  const found = await Promise.all(roots.map(([, top]) => isDirectory(top)));
  return { isUnified, roots: new Map(roots.filter((_, index) => found[index])) };
}

/** Most groups are empty by then, and a list of one is long: files for everything that it counts. */
async function removeWithChildren(directory: string): Promise<void> {
  const left = await rmdir(directory).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
  if (!left) return;
  for (const name of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (name.isDirectory()) await rmdir(join(directory, name.name)).catch(() => undefined);
  }
  await rmdir(directory).catch(() => undefined);
}

type Setting = readonly [controller: (typeof controllers)[number], file: string, value: number | string];

function v1Settings(limits: CgroupLimits): readonly Setting[] {
  const { cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes, pids, hugePages = {} } = limits;
  const settings: readonly (Setting | false)[] = [
    cpuShares !== undefined && ["cpu", "cpu.shares", cpuShares],
    cpuPeriodUs !== undefined && ["cpu", "cpu.cfs_period_us", cpuPeriodUs],
    cpuQuotaUs !== undefined && ["cpu", "cpu.cfs_quota_us", cpuQuotaUs ?? -1],
    memoryBytes !== undefined && ["memory", "memory.limit_in_bytes", memoryBytes ?? -1],
    pids !== undefined && ["pids", "pids.max", pids],
    ...Object.entries(hugePages).map(
      ([size, bytes]) => ["hugetlb", `hugetlb.${size}.limit_in_bytes`, bytes ?? -1] as const,
    ),
  ];
  return settings.filter((each) => each !== false);
}

function v2Settings(limits: CgroupLimits): readonly Setting[] {
  const { cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes, memoryMinBytes, pids, hugePages = {} } = limits;
  const settings: readonly (Setting | false)[] = [
    cpuShares !== undefined && ["cpu", "cpu.weight", toCpuWeight(cpuShares)],
    cpuQuotaUs !== undefined && ["cpu", "cpu.max", `${cpuQuotaUs ?? "max"} ${cpuPeriodUs ?? 100_000}`],
    memoryBytes !== undefined && ["memory", "memory.max", memoryBytes ?? "max"],
    memoryMinBytes !== undefined && ["memory", "memory.min", memoryMinBytes],
    pids !== undefined && ["pids", "pids.max", pids],
    ...Object.entries(hugePages).map(([size, bytes]) => ["hugetlb", `hugetlb.${size}.max`, bytes ?? "max"] as const),
  ];
  return settings.filter((each) => each !== false);
}

/** Converts cpu.shares (v1, 2 to 262144) to cpu.weight (v2, 1 to 10000). */
export function toCpuWeight(shares: number): number {
  return 1 + Math.floor(((shares - 2) * 9999) / 262_142);
}

function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (each) => each.isDirectory(),
    () => false,
  );
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
