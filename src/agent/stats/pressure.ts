/** Pressure stall information of a cgroup: how long its tasks waited for a resource (the kernel's `psi.rst`). */

/** Percentages of the last 10, 60 and 300 seconds, and microseconds since the start. */
export interface PressureFigures {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

export interface Pressure {
  /** No task made progress. */
  readonly full: PressureFigures;
  /** At least one task waited. */
  readonly some: PressureFigures;
}

export interface CgroupPressure {
  readonly cpu: Pressure | undefined;
  readonly memory: Pressure | undefined;
  readonly io: Pressure | undefined;
}

const NONE: PressureFigures = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** Lines of `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`; undefined when the kernel has none. */
export function parsePressure(text: string): Pressure | undefined {
  const read = (kind: "full" | "some"): PressureFigures | undefined => {
    const line = new RegExp(`^${kind} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)$`, "m").exec(text);
    if (line === null) return undefined;
    const [, avg10, avg60, avg300, total] = line;
    return { total: Number(total), avg10: Number(avg10), avg60: Number(avg60), avg300: Number(avg300) };
  };
  const some = read("some");
  // Older kernels have no line "full" for the CPU.
  return some === undefined ? undefined : { full: read("full") ?? NONE, some };
}
