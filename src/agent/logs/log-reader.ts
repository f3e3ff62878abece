/** Reads a container's log for `kubectl logs`. */
import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../std/time/clock.ts";
import { LineFormatter, type LineOptions } from "./format-lines.ts";
import type { LogChange, LogChanges } from "./log-changes.ts";
import { OpenLog, openNext } from "./open-log.ts";
import type { RemovedLogs } from "./removed-logs.ts";
import { listRotatedLogs } from "./rotated-logs.ts";

export interface LogOptions extends LineOptions {
  readonly follow: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

export interface LogSource {
  readonly path: string;
  readonly clock: Clock;
  readonly changes: LogChanges;
  readonly removed: RemovedLogs;
  readonly signal: AbortSignal;
  /** False once the container has exited and its last line is in the file. */
  readonly running: () => boolean;
}

const LOST_LINES =
  "[lines are missing here: log rotation removed them before they were read " +
  "(containerLogMaxSize, containerLogMaxFiles)]";
/** The runtime may write a few more lines to a rotated log after it has opened the next. */
const SETTLE_MS = 200;
/** By how much a file's modification time may precede the timestamp of its last line: kernels use a coarser clock. */
const MODIFIED_EARLY_MS = 50;

/** Chunks of the log. Ends with the log, or with the container when following, or when the signal aborts. */
export async function* readLog(source: LogSource, options: LogOptions): AsyncGenerator<Uint8Array> {
  const formatter = new LineFormatter(options);
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const lines of readLines(source, options)) {
    const text = formatter.format(lines);
    if (text.length === 0) continue;
    yield text.subarray(0, left);
    left -= text.length;
    if (left <= 0) return;
  }
}

/** Whole lines in each chunk; the last line of a log that is not followed may be incomplete. */
async function* readLines(source: LogSource, options: LogOptions): AsyncGenerator<Buffer> {
  let log = await openFirst(source, options);
  try {
    for (;;) {
      const next = yield* log.isCompressed ? readCompressed(source, options, log) : readFile(source, options, log);
      if (next === undefined) return;
      if (source.removed.hasBetween(source.path, await log.stamp(source.path), await next.stamp(source.path))) {
        yield formatNotice(source, options);
      }
      await log[Symbol.asyncDispose]();
      log = next;
    }
  } finally {
    await log[Symbol.asyncDispose]();
  }
}

/** A line of the log instead of those that are lost, as kubelet writes its errors into the response. */
function formatNotice({ clock }: LogSource, { stream = "stderr" }: LogOptions): Buffer {
  const time = new Date(clock.now()).toISOString();
  return Buffer.from(`${time} ${stream} F ${LOST_LINES}\n`);
}

/**
 * The current log; with a time, the oldest that was written since, so that a client that connects again gets also the
 * lines of logs that were rotated meanwhile. Kubelet reads only the current one.
 */
async function openFirst({ path }: LogSource, { since, tailLines }: LogOptions): Promise<OpenLog> {
  const rotated = await listRotatedLogs(path);
  if (since !== undefined && tailLines === undefined) {
    const older: string[] = [];
    for (const { path: file, stamp } of rotated) {
      const found = await lstat(file).catch(() => undefined);
      // Without the file, it has just been compressed or removed.
      if (found === undefined || found.mtimeMs >= since - MODIFIED_EARLY_MS) break;
      older.push(stamp);
    }
    const first = older.length < rotated.length ? await openNext(path, older.at(-1) ?? "") : undefined;
    if (first !== undefined) return first;
  }
  const log = await OpenLog.open(path).catch((error: NodeJS.ErrnoException) => {
    // Between a rotation and the reopening, the runtime writes to the log that was rotated last.
    const last = rotated.at(-1);
    if (error.code !== "ENOENT" || last === undefined || last.compressed) throw error;
    return OpenLog.open(last.path);
  });
  if (tailLines !== undefined) await log.seekTail(tailLines);
  return log;
}

/** Returns the next log, opened; undefined when the log is over. */
async function* readCompressed(
  source: LogSource,
  { follow }: LogOptions,
  log: OpenLog,
): AsyncGenerator<Buffer, OpenLog | undefined> {
  const { path, clock, signal } = source;
  yield* log.decompress(signal);
  for (;;) {
    const wasRunning = source.running();
    const next = await openNext(path, await log.stamp(path));
    if (next !== undefined || !follow || !wasRunning || signal.aborted) return next;
    await clock.sleep(SETTLE_MS, signal).catch(() => undefined);
  }
}

/** Returns the next log, opened; undefined when the log is over. */
async function* readFile(
  source: LogSource,
  { follow }: LogOptions,
  log: OpenLog,
): AsyncGenerator<Buffer, OpenLog | undefined> {
  const { path, clock, changes, signal } = source;
  let change: LogChange | undefined;
  let isSettled = false;
  try {
    while (!signal.aborted) {
      const wasRunning = source.running();
      const { unread, isAtPath } = await log.check(path, change ?? changes.reads);
      if (unread > 0) {
        const end = log.position + unread;
        while (log.position < end && !signal.aborted) {
          const lines = await log.read(end - log.position, changes.reads);
          if (lines === undefined) break;
          if (lines.length > 0) yield lines;
        }
        isSettled = false;
        // The current log is looked at again after a pause; one that is not followed ends where it ended before.
        if (!isAtPath) continue;
      }
      if (!isAtPath) {
        const next = await openNext(path, await log.stamp(path));
        const isLast = next !== undefined && (isSettled || !follow || !wasRunning);
        if (isLast || (next !== undefined && (await isComplete(log, source)))) return next;
        await next?.[Symbol.asyncDispose]();
        if (next !== undefined) {
          await clock.sleep(SETTLE_MS, signal).catch(() => undefined);
          isSettled = true;
          continue;
        }
      }
      if (!follow || !wasRunning) {
        if (!follow && log.rest.length > 0) yield log.rest;
        return undefined;
      }
      if (change !== undefined && !change.hasHappened) {
        await changes.wait(change, () => !source.running(), signal);
        change = undefined;
      } else {
        await changes.pause();
        change = changes.expect(dirname(path));
      }
    }
    return undefined;
  } finally {
    if (change !== undefined) changes.release(change);
  }
}

/** Whether a rotated log has been read and not written for a while. Requires that the next log exists. */
async function isComplete(log: OpenLog, { path, clock, changes }: LogSource): Promise<boolean> {
  const now = clock.now();
  const { unread, written } = await log.check(path, changes.reads);
  return unread === 0 && now - written >= SETTLE_MS;
}
