/** Reads what the node's disk has transferred since the boot. */
import { stat } from "node:fs/promises";
import { readProcFile } from "./proc-file.ts";

export interface DiskUsage {
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  /** Requests in progress. */
  readonly inProgress: number;
  readonly busyMs: number;
  /** The time of each request, including those at the same time. */
  readonly weightedMs: number;
}

/** As cAdvisor's for a file system that no block device of the kernel has. */
export const NO_DISK_USAGE: DiskUsage = {
  ...{ reads: 0, readsMerged: 0, sectorsRead: 0, readMs: 0 },
  ...{ writes: 0, writesMerged: 0, sectorsWritten: 0, writeMs: 0 },
  ...{ inProgress: 0, busyMs: 0, weightedMs: 0 },
};

/** The block device of the directory's file system. */
export async function readDiskUsage(directory: string): Promise<DiskUsage> {
  const { dev } = await stat(directory);
  return parseDiskUsage(readProcFile("/proc/diskstats") ?? "", dev);
}

/** `text`: /proc/diskstats; `device`: a number as of `stat`. */
export function parseDiskUsage(text: string, device: number): DiskUsage {
  const { major, minor } = splitDevice(device);
  for (const line of text.split("\n")) {
    const fields = line.trim().split(/\s+/);
    if (fields[0] !== String(major) || fields[1] !== String(minor)) continue;
    const at = (index: number): number => Number(fields[index] ?? 0);
    return {
      ...{ reads: at(3), readsMerged: at(4), sectorsRead: at(5), readMs: at(6) },
      ...{ writes: at(7), writesMerged: at(8), sectorsWritten: at(9), writeMs: at(10) },
      ...{ inProgress: at(11), busyMs: at(12), weightedMs: at(13) },
    };
  }
  return NO_DISK_USAGE;
}

/** The kernel's encoding of 32 bits: minor bits 8 to 19 are above the major number. */
function splitDevice(device: number): { readonly major: number; readonly minor: number } {
  return { major: (device >>> 8) & 0xfff, minor: (device & 0xff) | ((device >>> 12) & 0xfff00) };
}
