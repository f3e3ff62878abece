/** Profiles without sampling, in the place of those of Go's runtime: what keeps the event loop alive, and threads. */
import { readdir, readFile } from "node:fs/promises";
import type { SampleType, StackProfile } from "./pprof.ts";

const COUNT = "count";

/** Instead of goroutines: the timers, sockets, requests and children that keep the event loop alive, by type. */
export function profileActiveResources(nowMs: number): StackProfile {
  return countProfile("goroutine", process.getActiveResourcesInfo(), nowMs);
}

/** The threads of this process by the name that the kernel has for them. */
export async function profileThreads(nowMs: number, tasks = "/proc/self/task"): Promise<StackProfile> {
  const names = await Promise.all((await readdir(tasks)).map((id) => readName(`${tasks}/${id}/comm`)));
  return countProfile(
    "threadcreate",
    names.filter((name) => name !== undefined),
    nowMs,
  );
}

/** A profile of contention without samples: JavaScript has no locks, and Go samples neither unless it is requested. */
export function emptyContention(nowMs: number): StackProfile {
  const types = [
    { type: "contentions", unit: COUNT },
    { type: "delay", unit: "nanoseconds" },
  ];
  return {
    types,
    samples: [],
    period: { type: "contentions", unit: COUNT, value: 1 },
    startedMs: nowMs,
    durationMs: 0,
  };
}

function countProfile(type: string, names: readonly string[], nowMs: number): StackProfile {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const counted: SampleType = { type, unit: COUNT };
  const samples = [...counts]
    .toSorted(([, left], [, right]) => right - left)
    .map(([functionName, count]) => ({ frames: [{ functionName, file: "", startLine: 0 }], values: [count] }));
  return { types: [counted], samples, period: { ...counted, value: 1 }, startedMs: nowMs, durationMs: 0 };
}

/** Undefined when the thread has ended. */
async function readName(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch {
    return undefined;
  }
}
