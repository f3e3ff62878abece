/**
 * Rotates container logs so that they do not fill the disk: renames a log that exceeds its maximum size, and the
 * runtime opens a new one. Compresses logs that were rotated before, except the last one, which clients may still be
 * reading. On disk are at most the current log and the last rotated one, each with what was written in a period, and
 * older ones of `maxFiles` times `maxBytes`.
 */
import { createWriteStream } from "node:fs";
import { lstat, rename, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createGzip } from "node:zlib";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { openLog } from "../pods/containers/regular-file.ts";
import type { Observation, ObservedContainer } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RemovedLogs } from "./removed-logs.ts";
import {
  COMPRESSED,
  listRotatedLogs,
  listSuffixedNames,
  makeStamp,
  type RotatedLog,
  UNFINISHED,
} from "./rotated-logs.ts";

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
  /** Gets each log that is removed. */
  readonly removed: RemovedLogs;
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts. Never rejects. */
export async function rotateLogs(options: LogRotationOptions): Promise<void> {
  const { clock, pods, periodMs, signal } = options;
  /** Paths of logs that were rotated, whose older rotated ones are to be compressed. */
  const uncompressed = new Set<string>();
  let compression: Promise<void> | undefined;
  while (!signal.aborted) {
    await clock.sleep(periodMs, signal).catch(() => undefined);
    const containers = [...pods.workers].flatMap(({ observation }) => observation.containers);
    const written = containers.filter(({ state, logPath }) => state === "running" && logPath !== "");
    options.removed.retain(new Set(containers.map(({ logPath }) => logPath)));
    await forEach(options, written, async ({ id, logPath }) => {
      if (await rotate(options, id, logPath)) uncompressed.add(logPath);
    });
    // Compression may take longer than a period; rotation does not wait for it.
    if (compression !== undefined) continue;
    const logs = [...uncompressed].map((logPath) => ({ logPath }));
    uncompressed.clear();
    compression = forEach(options, logs, ({ logPath }) => compressOld(options, logPath)).finally(() => {
      compression = undefined;
    });
  }
  await compression;
}

/** Handles all logs with `workers` concurrently. Logs failures. */
async function forEach<Log extends Pick<ObservedContainer, "logPath">>(
  { log, workers, signal }: LogRotationOptions,
  logs: Log[],
  handle: (log: Log) => Promise<void>,
): Promise<void> {
  const work = async (): Promise<void> => {
    for (let next = logs.shift(); next !== undefined && !signal.aborted; next = logs.shift()) {
      const { logPath: path } = next;
      await handle(next).catch((error: unknown) => {
        if (!signal.aborted) log.warn("Failed to rotate container log", { path, error: String(error) });
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(workers, logs.length) }, work));
}

/** Returns whether the log was too large. */
async function rotate(options: LogRotationOptions, id: string, path: string): Promise<boolean> {
  const { runtime, clock, maxBytes, signal } = options;
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  });
  if (found === undefined) {
    // It was removed, or the agent has ended between the two steps below: the runtime still writes to the file.
    await runtime.reopenContainerLog({ containerId: id }, signal);
    return false;
  }
  if (found.size < maxBytes) return false;
  const rotated = await listRotatedLogs(path);
  const target = `${path}.${makeStamp(clock.now(), rotated.at(-1)?.stamp)}`;
  // First, as kubelet: the number of files has no moment above its limit.
  await removeExcess(options, path, rotated);
  await rename(path, target);
  try {
    await runtime.reopenContainerLog({ containerId: id }, signal);
  } catch (error) {
    // The runtime still writes to the file: restores its name.
    await rename(target, path);
    throw error;
  }
  return true;
}

/** Removes all logs of a run. */
export async function removeLogs(path: string): Promise<void> {
  for (const name of [basename(path), ...(await listSuffixedNames(path))])
    await rm(join(dirname(path), name), { force: true });
}

/**
 * Before another log is rotated, removes the oldest ones: those above the number of files, and those above their total
 * size.
 */
async function removeExcess(
  { maxFiles, maxBytes, removed }: LogRotationOptions,
  path: string,
  rotated: readonly RotatedLog[],
): Promise<void> {
  let bytes = 0;
  for (const [index, { path: file, stamp }] of rotated.toReversed().entries()) {
    bytes += (await lstat(file).catch(() => undefined))?.size ?? 0;
    const plain = file.endsWith(COMPRESSED) ? file.slice(0, -COMPRESSED.length) : file;
    if (index < maxFiles - 2 && bytes <= maxFiles * maxBytes) continue;
    removed.add(path, stamp);
    // Without the unfinished file, its compression fails at the end.
    for (const suffix of ["", COMPRESSED, UNFINISHED]) await rm(`${plain}${suffix}`, { force: true });
  }
}

async function compressOld({ log, signal }: LogRotationOptions, path: string): Promise<void> {
  for (const name of await listSuffixedNames(path)) {
    if (name.endsWith(UNFINISHED)) await rm(join(dirname(path), name), { force: true });
  }
  for (const { path: file, compressed } of (await listRotatedLogs(path)).slice(0, -1)) {
    if (compressed || signal.aborted) continue;
    // A log that cannot be compressed, as on a full disk, is removed when it is too old.
    await compress(file, signal).catch((error: NodeJS.ErrnoException) => {
      const isRemoved = error.code === "ENOENT";
      if (!isRemoved && !signal.aborted) {
        log.warn("Failed to compress container log", { path: file, error: String(error) });
      }
    });
  }
}

async function compress(path: string, signal: AbortSignal): Promise<void> {
  await using file = await openLog(path);
  const { atime, mtime } = await file.stat();
  const unfinished = `${path}${UNFINISHED}`;
  const target = createWriteStream(unfinished, { flags: "wx", mode: 0o640 });
  const gzip = createGzip({ level: constants.Z_BEST_SPEED });
  await pipeline(file.createReadStream({ autoClose: false }), gzip, target, { signal });
  // Readers compare it with the time since which they want lines.
  await utimes(unfinished, atime, mtime);
  await rename(unfinished, `${path}${COMPRESSED}`);
  await rm(path, { force: true });
}
