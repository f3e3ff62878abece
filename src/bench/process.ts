/** CPU time and memory of processes, from /proc and control groups. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** User and system time of all threads of a process in milliseconds. */
export function cpuMs(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    // The scheduler's counter: that of /proc/PID/stat has a resolution of 10 ms.
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1e6;
}

export interface Memory {
  /** MiB. */
  readonly rss: number;
  /** MiB; pages shared with others counted by share. */
  readonly pss: number;
  /** MiB; resident pages that are no file's: without program text, which a process reads once. */
  readonly anonymous: number;
}

export function memory(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mebibytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1]) / 1024;
  return { rss: mebibytes("Rss"), pss: mebibytes("Pss"), anonymous: mebibytes("Anonymous") };
}

/** A control group that counts the CPU time of short-lived processes. */
export class CpuGroup implements Disposable {
  readonly path: string;
  readonly #isUnified: boolean;

  /** Creates the group unless it exists; `name` is a path such as `/svc-bench`. */
  constructor(name: string) {
    this.#isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    this.path = join(this.#isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpuacct", name);
    mkdirSync(this.path, { recursive: true });
  }

  /** A command prefix that runs a command and its children in the group. */
  get commandPrefix(): readonly string[] {
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', this.path];
  }

  /** User and system time in milliseconds, including processes that have exited. */
  get cpuMs(): number {
    const read = (name: string): string => readFileSync(join(this.path, name), "utf8");
    return this.#isUnified
      ? Number(/^usage_usec (\d+)/m.exec(read("cpu.stat"))?.[1]) / 1e3
      : +read("cpuacct.usage") / 1e6;
  }

  /** Removes the group unless it has processes. */
  [Symbol.dispose](): void {
    try {
      rmdirSync(this.path);
    } catch {
      // The group has processes, or another owner removed it.
    }
  }
}
