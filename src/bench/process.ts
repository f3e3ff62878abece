/** What processes used so far and hold now, as the kernel tells. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

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

/** A control group whose processes come and go, and of which only the processor time matters. */
export class CpuGroup implements Disposable {
  readonly path: string;
  readonly #isUnified: boolean;

  /** Makes it, unless it is there; `/svc-bench` as control groups are named. */
  constructor(name: string) {
    this.#isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    this.path = join(this.#isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpuacct", name);
    mkdirSync(this.path, { recursive: true });
  }

  /** Words before a command that is to run in the group, and whatever it starts. */
  get through(): readonly string[] {
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', this.path];
  }

  /** User and system time in milliseconds, that of processes that have ended included. */
  get cpuMs(): number {
    const read = (name: string): string => readFileSync(join(this.path, name), "utf8");
    return this.#isUnified
      ? Number(/^usage_usec (\d+)/m.exec(read("cpu.stat"))?.[1]) / 1e3
      : +read("cpuacct.usage") / 1e6;
  }

  /** Leaves it where something still runs in it. */
  [Symbol.dispose](): void {
    try {
      rmdirSync(this.path);
    } catch {
      // Whoever put it there ends it.
    }
  }
}
