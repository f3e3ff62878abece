/**
 * Reads small files of /proc and /sys. Synchronous: the kernel makes their content while they are read, without waiting
 * for a device, and a promise for each of a thousand files would cost several times the reading.
 */
import { closeSync, openSync, readdirSync, readSync } from "node:fs";

/** Longer files are cut; the longest one that is read is the `memory.stat` of a large machine, about 4 KiB. */
const BYTES_MAX = 64 * 1024;
const buffer = Buffer.allocUnsafeSlow(BYTES_MAX);

/** Undefined when the file does not exist or cannot be read. */
export function readProcFile(path: string): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r");
    return readDescriptor(descriptor);
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Undefined when the file cannot be read. */
export function readDescriptor(descriptor: number): string | undefined {
  try {
    return buffer.toString("latin1", 0, readSync(descriptor, buffer, 0, BYTES_MAX, 0));
  } catch {
    return undefined;
  }
}

/** The number that is the whole content; undefined also for `max`. */
export function readProcNumber(path: string, read = readProcFile): number | undefined {
  const text = read(path);
  const value = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isNaN(value) ? undefined : value;
}

/** Bytes of a key of `/proc/meminfo`: `MemTotal`; 0 when the kernel does not have it. */
export function readMeminfo(): (key: string) => number {
  const text = readProcFile("/proc/meminfo") ?? "";
  return (key) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
}

/** The start of the machine: milliseconds since 1970. */
export function readBootTime(): number {
  return Number(/^btime (\d+)$/m.exec(readProcFile("/proc/stat") ?? "")?.[1] ?? 0) * 1000;
}

/** Processes and threads of the machine, and their maximum; 0 where the kernel does not report them. */
export function readProcessLimits(): { readonly running: number; readonly max: number } {
  const maxima = ["pid_max", "threads-max"].flatMap((name) => readProcNumber(`/proc/sys/kernel/${name}`) ?? []);
  const [, tasks = "0"] = /^(?:\S+ ){3}\d+\/(\d+)/.exec(readProcFile("/proc/loadavg") ?? "") ?? [];
  return { running: Number(tasks), max: maxima.length === 0 ? 0 : Math.min(...maxima) };
}

/** Lines of `key value`. */
export function parseKeyedNumbers(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const space = text.indexOf(" ", start);
    if (space !== -1 && space < end) values.set(text.slice(start, space), Number(text.slice(space + 1, end)));
    start = end + 1;
  }
  return values;
}

/** Empty when the directory does not exist. */
export function listDirectory(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
