/** Reads what a cgroup uses, and its limits, from the files of cgroup v1 or v2. */
import { join } from "node:path";
import type { Clock } from "../../std/time/clock.ts";
import { type CgroupPressure, parsePressure } from "./pressure.ts";
import { listDirectory, parseKeyedNumbers, readMeminfo, readProcFile, readProcNumber } from "./proc-file.ts";

export interface CpuUsage {
  readonly totalNs: number;
  readonly userNs: number;
  readonly systemNs: number;
  /** Enforcement periods of the quota; undefined without a quota. */
  readonly throttling:
    | { readonly periods: number; readonly throttledPeriods: number; readonly throttledNs: number }
    | undefined;
}

/** Bytes, of the cgroup and its children. */
export interface MemoryUsage {
  readonly usage: number;
  /** Usage without file pages that were not used lately. */
  readonly workingSet: number;
  readonly rss: number;
  readonly cache: number;
  readonly mappedFile: number;
  readonly swap: number;
  readonly activeFile: number;
  readonly inactiveFile: number;
  readonly kernel: number;
  readonly maxUsage: number;
  readonly limitHits: number;
  readonly oomKills: number;
  /** Of the cgroup alone, and with its children. */
  readonly pageFaults: readonly [own: number, hierarchy: number];
  readonly majorPageFaults: readonly [own: number, hierarchy: number];
}

/** One block device. */
export interface DeviceUsage {
  /** `8:0` */
  readonly device: string;
  readonly reads: number;
  readonly writes: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
}

export interface CgroupUsage {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly threads: number | undefined;
  readonly devices: readonly DeviceUsage[];
  /** Undefined: it is not measured. */
  readonly pressure?: CgroupPressure | undefined;
}

export interface CgroupSpec {
  readonly cpuShares: number | undefined;
  readonly cpuPeriodUs: number | undefined;
  /** Undefined: no limit; likewise below. */
  readonly cpuQuotaUs: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly memoryReservationBytes: number | undefined;
  /** Of memory and swap together. */
  readonly memorySwapBytes: number | undefined;
  readonly threads: number | undefined;
}

/** What `/metrics/resource` has; three files instead of a dozen. */
export interface ResourceUsage {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly cpuNs: number | undefined;
  /** Bytes. */
  readonly workingSet: number | undefined;
  readonly swap: number | undefined;
}

export interface CgroupReader {
  /** Undefined when the cgroup does not exist. */
  readResources(path: string): ResourceUsage | undefined;
  /** Undefined when the cgroup does not exist. */
  readUsage(path: string): CgroupUsage | undefined;
  readSpec(path: string): CgroupSpec;
  /** Bytes; undefined: no limit. */
  readMemoryLimit(path: string): number | undefined;
  /** Names of the cgroup's children. */
  listChildren(path: string): readonly string[];
  /** Processes of the cgroup, without those of its children. */
  listProcesses(path: string): readonly number[];
}

interface CgroupReaderOptions {
  /** Has an effect with cgroup v2 only. */
  readonly readsPressure?: boolean;
  /** Reads what changes with use, and is undefined for a file that cannot be read. */
  readonly readFile?: (path: string) => string | undefined;
}

/** `hierarchy` is the mount point of the cgroup file system. */
export function createCgroupReader(
  hierarchy: string,
  isUnified: boolean,
  clock: Clock,
  { readsPressure = false, readFile = readProcFile }: CgroupReaderOptions = {},
): CgroupReader {
  const reader = isUnified
    ? new UnifiedReader(hierarchy, clock, readFile, readsPressure)
    : new LegacyReader(hierarchy, clock, readFile);
  return {
    readResources: (path) => reader.readResources(path),
    readUsage: (path) => reader.readUsage(path),
    readSpec: (path) => reader.readSpec(path),
    readMemoryLimit: (path) => reader.readMemoryLimit(path),
    listChildren: (path) => listDirectory(reader.directory(path)).filter((name) => !name.includes(".") || isUnit(name)),
    listProcesses: (path) =>
      (readProcFile(join(reader.directory(path), "cgroup.procs")) ?? "").split("\n").filter(Boolean).map(Number),
  };
}

/** Files of a cgroup have a dot in their name, and so have the units of systemd. */
function isUnit(name: string): boolean {
  return /\.(?:scope|slice|service)$/.test(name);
}

/** The kernel's unit of CPU times on every architecture that Linux reports them to programs: 1/100 s. */
const TICK_NS = 10_000_000;
/** cgroup v1 writes "no limit" as the largest multiple of the page size. */
const NO_LIMIT = 2 ** 62;

class LegacyReader {
  readonly #hierarchy: string;
  readonly #clock: Clock;
  readonly #readFile: typeof readProcFile;
  readonly #controllers: ReadonlySet<string>;

  constructor(hierarchy: string, clock: Clock, readFile: typeof readProcFile) {
    this.#hierarchy = hierarchy;
    this.#clock = clock;
    this.#readFile = readFile;
    this.#controllers = new Set(listDirectory(hierarchy));
  }

  directory(path: string): string {
    const controller = ["cpuacct", "cpu", "memory", "pids"].find((name) => this.#controllers.has(name)) ?? "cpu";
    return join(this.#hierarchy, controller, path);
  }

  readUsage(path: string): CgroupUsage | undefined {
    const cpu = this.#readCpu(path);
    const memory = this.#readMemory(path);
    if (cpu === undefined && memory === undefined) return undefined;
    return {
      timeMs: this.#clock.now(),
      cpu,
      memory,
      threads: this.#readNumber("pids", path, "pids.current"),
      devices: this.#readDevices(path),
    };
  }

  readResources(path: string): ResourceUsage | undefined {
    const cpuNs = this.#readNumber("cpuacct", path, "cpuacct.usage");
    const usage = this.#readNumber("memory", path, "memory.usage_in_bytes");
    if (cpuNs === undefined && usage === undefined) return undefined;
    const stat = this.#readKeyed("memory", path, "memory.stat");
    const inactive = stat.get("total_inactive_file") ?? 0;
    const workingSet = usage === undefined ? undefined : Math.max(0, usage - inactive);
    return {
      timeMs: this.#clock.now(),
      cpuNs,
      workingSet,
      swap: usage === undefined ? undefined : (stat.get("total_swap") ?? 0),
    };
  }

  readSpec(path: string): CgroupSpec {
    const read = (controller: string, name: string) => this.#readNumber(controller, path, name, readProcFile);
    const quota = read("cpu", "cpu.cfs_quota_us");
    return {
      cpuShares: read("cpu", "cpu.shares"),
      cpuPeriodUs: read("cpu", "cpu.cfs_period_us"),
      cpuQuotaUs: quota === undefined || quota < 0 ? undefined : quota,
      memoryBytes: toLimit(read("memory", "memory.limit_in_bytes")),
      memoryReservationBytes: toLimit(read("memory", "memory.soft_limit_in_bytes")),
      memorySwapBytes: toLimit(read("memory", "memory.memsw.limit_in_bytes")),
      threads: read("pids", "pids.max"),
    };
  }

  readMemoryLimit(path: string): number | undefined {
    return toLimit(this.#readNumber("memory", path, "memory.limit_in_bytes"));
  }

  #readCpu(path: string): CpuUsage | undefined {
    const totalNs = this.#readNumber("cpuacct", path, "cpuacct.usage");
    if (totalNs === undefined) return undefined;
    const stat = this.#readKeyed("cpuacct", path, "cpuacct.stat");
    const periods = this.#readKeyed("cpu", path, "cpu.stat");
    return {
      totalNs,
      userNs: (stat.get("user") ?? 0) * TICK_NS,
      systemNs: (stat.get("system") ?? 0) * TICK_NS,
      throttling: toThrottling(periods, periods.get("throttled_time") ?? 0),
    };
  }

  #readMemory(path: string): MemoryUsage | undefined {
    const usage = this.#readNumber("memory", path, "memory.usage_in_bytes");
    if (usage === undefined) return undefined;
    const stat = this.#readKeyed("memory", path, "memory.stat");
    const total = (name: string): number => stat.get(`total_${name}`) ?? stat.get(name) ?? 0;
    return {
      usage,
      workingSet: Math.max(0, usage - total("inactive_file")),
      rss: total("rss"),
      cache: total("cache"),
      mappedFile: total("mapped_file"),
      swap: total("swap"),
      activeFile: total("active_file"),
      inactiveFile: total("inactive_file"),
      kernel: this.#readNumber("memory", path, "memory.kmem.usage_in_bytes") ?? 0,
      maxUsage: this.#readNumber("memory", path, "memory.max_usage_in_bytes") ?? 0,
      limitHits: this.#readNumber("memory", path, "memory.failcnt") ?? 0,
      oomKills: this.#readKeyed("memory", path, "memory.oom_control").get("oom_kill") ?? 0,
      pageFaults: [stat.get("pgfault") ?? 0, total("pgfault")],
      majorPageFaults: [stat.get("pgmajfault") ?? 0, total("pgmajfault")],
    };
  }

  #readDevices(path: string): readonly DeviceUsage[] {
    if (!this.#controllers.has("blkio")) return [];
    const read = (name: string): string => this.#readFile(`${this.#hierarchy}/blkio/${path}/${name}`) ?? "";
    const bytes = read("blkio.throttle.io_service_bytes");
    // Most containers have not used a device: the line of the total is the only one.
    if (bytes === "" || bytes.startsWith("Total")) return [];
    return mergeDevices(bytes, read("blkio.throttle.io_serviced"));
  }

  #readKeyed(controller: string, path: string, name: string): ReadonlyMap<string, number> {
    if (!this.#controllers.has(controller)) return none;
    return parseKeyedNumbers(this.#readFile(`${this.#hierarchy}/${controller}/${path}/${name}`) ?? "");
  }

  #readNumber(controller: string, path: string, name: string, read = this.#readFile): number | undefined {
    if (!this.#controllers.has(controller)) return undefined;
    return readProcNumber(`${this.#hierarchy}/${controller}/${path}/${name}`, read);
  }
}

function toLimit(bytes: number | undefined): number | undefined {
  return bytes === undefined || bytes > NO_LIMIT ? undefined : bytes;
}

const none: ReadonlyMap<string, number> = new Map();

function toThrottling(stat: ReadonlyMap<string, number>, throttledNs: number): CpuUsage["throttling"] {
  const periods = stat.get("nr_periods") ?? 0;
  return periods === 0 ? undefined : { periods, throttledPeriods: stat.get("nr_throttled") ?? 0, throttledNs };
}

/** Lines of `8:0 Read 4096`. */
function mergeDevices(bytes: string, operations: string): readonly DeviceUsage[] {
  const found = new Map<string, { reads: number; writes: number; readBytes: number; writtenBytes: number }>();
  const add = (text: string, read: "reads" | "readBytes", write: "writes" | "writtenBytes"): void => {
    for (const [, device = "", kind, value] of text.matchAll(/^(\d+:\d+) (Read|Write) (\d+)$/gm)) {
      const usage = found.get(device) ?? { reads: 0, writes: 0, readBytes: 0, writtenBytes: 0 };
      usage[kind === "Read" ? read : write] = Number(value);
      found.set(device, usage);
    }
  };
  add(bytes, "readBytes", "writtenBytes");
  add(operations, "reads", "writes");
  return [...found].map(([device, usage]) => ({ device, ...usage }));
}

class UnifiedReader {
  readonly #hierarchy: string;
  readonly #clock: Clock;
  readonly #readFile: typeof readProcFile;
  readonly #readsPressure: boolean;

  constructor(hierarchy: string, clock: Clock, readFile: typeof readProcFile, readsPressure: boolean) {
    this.#hierarchy = hierarchy;
    this.#clock = clock;
    this.#readFile = readFile;
    this.#readsPressure = readsPressure;
  }

  directory(path: string): string {
    return join(this.#hierarchy, path);
  }

  readUsage(path: string): CgroupUsage | undefined {
    const cpu = this.#readKeyed(path, "cpu.stat");
    if (cpu.size === 0) return undefined;
    const us = (name: string): number => (cpu.get(name) ?? 0) * 1000;
    return {
      timeMs: this.#clock.now(),
      cpu: {
        totalNs: us("usage_usec"),
        userNs: us("user_usec"),
        systemNs: us("system_usec"),
        throttling: toThrottling(cpu, us("throttled_usec")),
      },
      memory: this.#readMemory(path),
      threads: this.#readNumber(path, "pids.current"),
      devices: parseIoStat(this.#read(path, "io.stat")),
      ...(this.#readsPressure ? { pressure: this.#readPressure(path) } : {}),
    };
  }

  #readPressure(path: string): CgroupPressure {
    const read = (name: string) => parsePressure(this.#read(path, `${name}.pressure`));
    return { cpu: read("cpu"), memory: read("memory"), io: read("io") };
  }

  readResources(path: string): ResourceUsage | undefined {
    const cpu = this.#readKeyed(path, "cpu.stat");
    if (cpu.size === 0) return undefined;
    const stat = this.#readKeyed(path, "memory.stat");
    const usage = stat.size === 0 ? undefined : (this.#readNumber(path, "memory.current") ?? readUsedMemory());
    return {
      timeMs: this.#clock.now(),
      cpuNs: (cpu.get("usage_usec") ?? 0) * 1000,
      workingSet: usage === undefined ? undefined : Math.max(0, usage - (stat.get("inactive_file") ?? 0)),
      swap: usage === undefined ? undefined : (this.#readNumber(path, "memory.swap.current") ?? 0),
    };
  }

  readSpec(path: string): CgroupSpec {
    const read = (name: string) => this.#readNumber(path, name, readProcFile);
    const [quota, period] = (readProcFile(`${this.#hierarchy}/${path}/cpu.max`) ?? "").split(" ").map(Number);
    const weight = read("cpu.weight");
    const memoryBytes = read("memory.max");
    const swap = read("memory.swap.max");
    return {
      cpuShares: weight && toCpuShares(weight),
      cpuPeriodUs: period || undefined,
      cpuQuotaUs: quota || undefined,
      memoryBytes,
      memoryReservationBytes: read("memory.low") || undefined,
      memorySwapBytes: memoryBytes === undefined || swap === undefined ? undefined : memoryBytes + swap,
      threads: read("pids.max"),
    };
  }

  readMemoryLimit(path: string): number | undefined {
    return this.#readNumber(path, "memory.max");
  }

  #readMemory(path: string): MemoryUsage | undefined {
    const text = this.#read(path, "memory.stat");
    if (text === "") return undefined;
    const stat = parseKeyedNumbers(text);
    const of = (name: string): number => stat.get(name) ?? 0;
    // The root has no such file.
    const usage = this.#readNumber(path, "memory.current") ?? readUsedMemory();
    const events = this.#readKeyed(path, "memory.events");
    const faults = (name: string): readonly [number, number] => [of(name), of(name)];
    return {
      usage,
      workingSet: Math.max(0, usage - of("inactive_file")),
      rss: of("anon"),
      cache: of("file"),
      mappedFile: of("file_mapped"),
      swap: this.#readNumber(path, "memory.swap.current") ?? 0,
      activeFile: of("active_file"),
      inactiveFile: of("inactive_file"),
      kernel: stat.get("kernel") ?? of("kernel_stack") + of("slab") + of("sock"),
      maxUsage: this.#readNumber(path, "memory.peak") ?? usage,
      limitHits: events.get("max") ?? 0,
      oomKills: events.get("oom_kill") ?? 0,
      pageFaults: faults("pgfault"),
      majorPageFaults: faults("pgmajfault"),
    };
  }

  #read(path: string, name: string): string {
    return this.#readFile(`${this.#hierarchy}/${path}/${name}`) ?? "";
  }

  #readKeyed(path: string, name: string): ReadonlyMap<string, number> {
    return parseKeyedNumbers(this.#read(path, name));
  }

  #readNumber(path: string, name: string, read = this.#readFile): number | undefined {
    return readProcNumber(`${this.#hierarchy}/${path}/${name}`, read);
  }
}

/** The inverse of `toCpuWeight`, as in cAdvisor. */
function toCpuShares(weight: number): number {
  return Math.floor(2 + ((weight - 1) * 262_142) / 9999);
}

/** Memory of the whole machine that is not free. */
function readUsedMemory(): number {
  const of = readMeminfo();
  return of("MemTotal") - of("MemFree");
}

/** Lines of `8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`. */
function parseIoStat(text: string): readonly DeviceUsage[] {
  return [...text.matchAll(/^(\d+:\d+) (.*=.*)$/gm)].map(([, device = "", rest = ""]) => {
    const values = new Map(rest.split(" ").map((pair) => pair.split("=") as [string, string]));
    const of = (name: string): number => Number(values.get(name) ?? 0);
    return { device, reads: of("rios"), writes: of("wios"), readBytes: of("rbytes"), writtenBytes: of("wbytes") };
  });
}
