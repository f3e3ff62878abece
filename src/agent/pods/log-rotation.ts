/** Keeps container logs from filling the disk: a log over its size is put aside and the runtime begins a new one. */
import { lstat, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../../std/clock.ts";
import type { Logger } from "../../std/log.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { PodManager } from "./pod-manager.ts";

export interface LogRotationOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pods: Pick<PodManager, "workers">;
  /** Files per container, the current one among them; at least 2. */
  readonly maxFiles: number;
  readonly maxBytes: number;
  readonly periodMs: number;
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts. Never rejects. */
export async function rotateLogs(options: LogRotationOptions): Promise<void> {
  const { clock, log, pods, periodMs, signal } = options;
  while (!signal.aborted) {
    await clock.sleep(periodMs, signal).catch(() => undefined);
    for (const worker of pods.workers) {
      for (const { id, logPath, state } of worker.observation.containers) {
        if (signal.aborted || state !== "running" || logPath === "") continue;
        await rotate(options, id, logPath).catch((error: unknown) => {
          if (!signal.aborted) log.warn("Cannot rotate container log", { path: logPath, error: String(error) });
        });
      }
    }
  }
}

async function rotate(options: LogRotationOptions, id: string, path: string): Promise<void> {
  const { runtime, clock, maxBytes, maxFiles, signal } = options;
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || found.size <= maxBytes) return;
  // 0.log.20261121-033207: sorts by age.
  const stamp = new Date(clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const aside = `${path}.${stamp}`;
  await rename(path, aside);
  try {
    await runtime.reopenContainerLog({ containerId: id }, signal);
  } catch (error) {
    // The runtime still writes to the file: it gets its name back.
    await rename(aside, path);
    throw error;
  }
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(`${basename(path)}.`)).sort();
  for (const name of names.slice(0, Math.max(0, names.length - (maxFiles - 1)))) {
    await rm(join(dirname(path), name), { force: true });
  }
}
