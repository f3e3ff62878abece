/** Reads facts about this machine from /proc, /sys and the file systems. */
import { readdir, readFile, statfs } from "node:fs/promises";
import { arch, availableParallelism, release } from "node:os";

export interface MachineInfo {
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** `amd64`, `arm64` */
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  /** By size as Kubernetes names it (`2Mi`): bytes reserved for huge pages. */
  readonly hugePages: Readonly<Record<string, number>>;
}

export interface Usage {
  readonly disk: { readonly capacityBytes: number; readonly availableBytes: number };
  readonly inodes: { readonly capacity: number; readonly free: number };
}

const goArch: Readonly<Record<string, string>> = {
  x64: "amd64",
  arm64: "arm64",
  arm: "arm",
  ppc64: "ppc64le",
  s390x: "s390x",
};

export async function readMachine(): Promise<MachineInfo> {
  const [machineId, uuid, bootId, osRelease, meminfo] = await Promise.all([
    readText("/etc/machine-id"),
    readText("/sys/class/dmi/id/product_uuid"),
    readText("/proc/sys/kernel/random/boot_id"),
    readText("/etc/os-release"),
    readText("/proc/meminfo"),
  ]);
  return {
    machineId,
    systemUuid: uuid === "" ? machineId : uuid,
    bootId,
    kernelVersion: release(),
    osImage: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(osRelease)?.[1] ?? "Linux",
    architecture: goArch[arch()] ?? arch(),
    cpus: availableParallelism(),
    memoryBytes: parseKilobytes(meminfo, "MemTotal") * 1024,
    swapBytes: parseKilobytes(meminfo, "SwapTotal") * 1024,
    hugePages: await readHugePages(),
  };
}

/** `directory` lies on the file system of pods. */
export async function readUsage(directory: string): Promise<Usage> {
  const fs = await statfs(directory);
  return {
    disk: { capacityBytes: fs.blocks * fs.bsize, availableBytes: fs.bavail * fs.bsize },
    inodes: { capacity: fs.files, free: fs.ffree },
  };
}

/** Names of the swap devices in use. */
export async function readSwapDevices(): Promise<readonly string[]> {
  const lines = (await readText("/proc/swaps")).split("\n").slice(1);
  return lines.map((line) => line.split(/\s+/)[0] ?? "").filter((name) => name !== "");
}

/** Whether the machine uses cgroup v1. */
export async function usesCgroupV1(): Promise<boolean> {
  const mounts = await readText("/proc/self/mounts");
  return !mounts
    .split("\n")
    .some((line) => line.split(" ")[1] === "/sys/fs/cgroup" && line.split(" ")[2] === "cgroup2");
}

async function readHugePages(): Promise<Readonly<Record<string, number>>> {
  const root = "/sys/kernel/mm/hugepages";
  const sizes: Record<string, number> = {};
  for (const name of await readdir(root).catch(() => [])) {
    const kb = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1]);
    if (!Number.isFinite(kb)) continue;
    const count = Number(await readText(`${root}/${name}/nr_hugepages`)) || 0;
    const label = kb >= 1024 * 1024 ? `${kb / 1024 / 1024}Gi` : kb >= 1024 ? `${kb / 1024}Mi` : `${kb}Ki`;
    sizes[label] = count * kb * 1024;
  }
  return sizes;
}

function parseKilobytes(meminfo: string, key: string): number {
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(meminfo)?.[1] ?? 0);
}

async function readText(path: string): Promise<string> {
  return (await readFile(path, "utf8").catch(() => "")).trim();
}
