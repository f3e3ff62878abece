/** What a process used so far and holds now, from /proc. */
import { readFileSync } from "node:fs";

/** The kernel counts processor time in hundredths of a second. */
const TICK_MS = 10;

/** User and system time in milliseconds. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

export interface Memory {
  /** MiB. */
  readonly rss: number;
  /** MiB; pages shared with others counted by share. */
  readonly pss: number;
}

export function memory(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mebibytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1]) / 1024;
  return { rss: mebibytes("Rss"), pss: mebibytes("Pss") };
}
