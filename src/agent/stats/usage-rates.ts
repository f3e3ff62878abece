/** CPU use as a rate, from two readings of a cgroup's CPU time. */
import type { CgroupUsage } from "./cgroup-reader.ts";

/** Readings that follow each other more closely give the earlier rate: ticks would distort it. */
const WINDOW_MIN_MS = 1_000;
/** An older reading says nothing about the present use. */
const WINDOW_MAX_MS = 300_000;

interface Reading {
  readonly timeMs: number;
  readonly totalNs: number;
  /** Nanoseconds of CPU time per second. */
  readonly rate: number | undefined;
}

export class UsageRates {
  /** By path of the cgroup; bounded by `retain`. */
  readonly #readings = new Map<string, Reading>();

  /** Nanoseconds of CPU time per second; undefined at the first reading. */
  update(path: string, { cpu, timeMs }: CgroupUsage): number | undefined {
    if (cpu === undefined) return undefined;
    const before = this.#readings.get(path);
    const elapsedMs = timeMs - (before?.timeMs ?? 0);
    if (before !== undefined && elapsedMs >= 0 && elapsedMs < WINDOW_MIN_MS) return before.rate;
    const isUsable = before !== undefined && elapsedMs > 0 && elapsedMs <= WINDOW_MAX_MS;
    const rate = isUsable ? Math.max(0, Math.round(((cpu.totalNs - before.totalNs) * 1000) / elapsedMs)) : undefined;
    this.#readings.set(path, { timeMs, totalNs: cpu.totalNs, rate });
    return rate;
  }

  /** Forgets all other cgroups. */
  retain(paths: ReadonlySet<string>): void {
    for (const path of this.#readings.keys()) if (!paths.has(path)) this.#readings.delete(path);
  }
}
