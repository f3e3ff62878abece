/** What a process used so far and holds now, from /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** User and system time of all its threads in milliseconds. */
export function cpuMs(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    // The scheduler's own count: that of /proc/PID/stat goes in steps of 10 ms.
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1e6;
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
