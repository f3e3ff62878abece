/**
 * Rotates container logs so that they do not fill the disk: renames a log that exceeds its maximum size, and the
 * runtime opens a new one. Compresses logs that were rotated before, except the last one, which clients may still be
 * reading.
 */
import { createWriteStream } from "node:fs";
import { lstat, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { openLog } from "../pods/containers/regular-file.ts";

export interface LogRotationOptions {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pods: { readonly workers: Iterable<{ readonly observation: Observation }> };
  /** Files per container, including the current one; at least 2. */
  readonly maxFiles: number;
  readonly maxBytes: number;
  /** Logs that are rotated concurrently. */
  readonly workers: number;
  readonly periodMs: number;
  readonly signal: AbortSignal;
}

const COMPRESSED = ".gz";
const UNFINISHED = ".tmp";

/** Runs until the signal aborts. Never rejects. */
export async function rotateLogs(options: LogRotationOptions): Promise<void> {
  const { clock, pods, workers, periodMs, signal } = options;
  while (!signal.aborted) {
    await clock.sleep(periodMs, signal).catch(() => undefined);
    const written = [...pods.workers].flatMap(({ observation }) =>
      observation.containers.filter(({ state, logPath }) => state === "running" && logPath !== ""),
    );
    await Promise.all(Array.from({ length: Math.min(workers, written.length) }, () => rotateAll(options, written)));
  }
}

/** Rotates logs from the shared list until it is empty. */
async function rotateAll(options: LogRotationOptions, logs: ObservedContainer[]): Promise<void> {
  const { log, signal } = options;
  for (let next = logs.shift(); next !== undefined && !signal.aborted; next = logs.shift()) {
    const { id, logPath } = next;
    await rotate(options, id, logPath).catch((error: unknown) => {
      if (!signal.aborted) log.warn("Failed to rotate container log", { path: logPath, error: String(error) });
    });
  }
}

async function rotate(options: LogRotationOptions, id: string, path: string): Promise<void> {
  const { runtime, clock, maxBytes, signal } = options;
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || found.size <= maxBytes) return;
  await removeExcess(options, path);
  // 0.log.20261121-033207: names sort by age.
  const stamp = new Date(clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
  const rotated = `${path}.${stamp}`;
  await rename(path, rotated);
  try {
    await runtime.reopenContainerLog({ containerId: id }, signal);
  } catch (error) {
    // The runtime still writes to the file: restores its name.
    await rename(rotated, path);
    throw error;
  }
}

/** Removes all logs of a run. */
export async function removeLogs(path: string): Promise<void> {
  for (const name of [basename(path), ...(await listRotated(path))])
    await rm(join(dirname(path), name), { force: true });
}

/** Names of the rotated logs, oldest first. */
async function listRotated(path: string): Promise<readonly string[]> {
  const names = await readdir(dirname(path)).catch(() => []);
  return names.filter((name) => name.startsWith(`${basename(path)}.`)).sort();
}

/** Removes the oldest logs, so that one more fits beside the current one, and compresses the others. */
async function removeExcess({ maxFiles, log }: LogRotationOptions, path: string): Promise<void> {
  const directory = dirname(path);
  const names = await listRotated(path);
  const [unfinished, whole] = [true, false].map((is) => names.filter((name) => name.endsWith(UNFINISHED) === is));
  const excess = whole!.slice(0, Math.max(0, whole!.length - (maxFiles - 2)));
  for (const name of [...unfinished!, ...excess]) await rm(join(directory, name), { force: true });
  for (const name of whole!.slice(excess.length)) {
    if (name.endsWith(COMPRESSED)) continue;
    // A log that cannot be compressed, as on a full disk, is removed when it is too old.
    await compress(join(directory, name)).catch((error: unknown) => {
      log.warn("Failed to compress container log", { path: join(directory, name), error: String(error) });
    });
  }
}

async function compress(path: string): Promise<void> {
  await using file = await openLog(path);
  const unfinished = `${path}${UNFINISHED}`;
  const target = createWriteStream(unfinished, { flags: "wx", mode: 0o640 });
  await pipeline(file.createReadStream({ autoClose: false }), createGzip(), target);
  await rename(unfinished, `${path}${COMPRESSED}`);
  await rm(path);
}
