/** Reads a container's log for `kubectl logs`. */
import { type FileHandle, lstat } from "node:fs/promises";
import type { Clock } from "../../std/time/clock.ts";
import { openLog } from "../pods/containers/regular-file.ts";
import { parseLogLine } from "./log-line.ts";

export interface LogOptions {
  readonly follow: boolean;
  readonly tailLines: number | undefined;
  /** Milliseconds since 1970; older lines are skipped. */
  readonly since: number | undefined;
  readonly timestamps: boolean;
  readonly limitBytes: number | undefined;
}

export interface LogSource {
  readonly path: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** False once the container has exited and its last line is in the file. */
  readonly running: () => boolean;
}

const CHUNK_BYTES = 64 * 1024;
const POLL_MS = 250;
/** A longer line is returned in parts. The runtime splits lines at 16 KiB. */
const LINE_BYTES_MAX = 1024 * 1024;

/** Chunks of the log. Ends with the log, or with the container when following, or when the signal aborts. */
export async function* readLog(source: LogSource, options: LogOptions): AsyncGenerator<Uint8Array> {
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const lines of readLines(source, options)) {
    const text: Buffer[] = [];
    for (const line of lines) {
      const formatted = formatLine(line, options);
      if (formatted !== undefined) text.push(formatted);
    }
    const whole = Buffer.concat(text);
    if (whole.length === 0) continue;
    yield whole.subarray(0, left);
    left -= whole.length;
    if (left <= 0) return;
  }
}

function formatLine(line: string, options: LogOptions): Buffer | undefined {
  const parsed = parseLogLine(line);
  if (parsed === undefined) return undefined;
  if (options.since !== undefined && Date.parse(parsed.time) < options.since) return undefined;
  const stamp = options.timestamps ? `${parsed.time} ` : "";
  return Buffer.from(`${stamp}${parsed.content}${parsed.partial ? "" : "\n"}`);
}

async function* readLines(source: LogSource, options: LogOptions): AsyncGenerator<readonly string[]> {
  let file = await openLog(source.path);
  try {
    let position = options.tailLines === undefined ? 0 : await findTailPosition(file, options.tailLines);
    let rest = Buffer.alloc(0);
    let successor: FileHandle | undefined;
    while (!source.signal.aborted) {
      const wasRunning = source.running();
      const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, position);
      if (bytesRead > 0) {
        position += bytesRead;
        const all = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
        const end = all.lastIndexOf(10);
        rest = end < 0 && all.length < LINE_BYTES_MAX ? all : all.subarray(end + 1);
        if (end >= 0) yield all.subarray(0, end).toString("utf8").split("\n");
        continue;
      }
      if (successor !== undefined) {
        await file.close();
        file = successor;
        successor = undefined;
        position = 0;
        rest = Buffer.alloc(0);
        continue;
      }
      successor = options.follow ? await openRotated(source.path, file) : undefined;
      // What was written to the old file since the last read comes first.
      if (successor !== undefined) continue;
      if (!options.follow || !wasRunning) return;
      await source.clock.sleep(POLL_MS, source.signal).catch(() => undefined);
    }
  } finally {
    await file.close();
  }
}

/** Opens the file that has replaced the one at the path; undefined while it is the same. */
async function openRotated(path: string, file: FileHandle): Promise<FileHandle | undefined> {
  const [now, held] = await Promise.all([lstat(path).catch(() => undefined), file.stat()]);
  if (now === undefined || now.ino === held.ino) return undefined;
  return openLog(path).catch(() => undefined);
}

/** The offset of the last `lines` lines. Reads backwards. */
async function findTailPosition(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat();
  if (lines <= 0) return size;
  let found = 0;
  for (let end = size; end > 0; ) {
    const length = Math.min(CHUNK_BYTES, end);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, end - length);
    for (let index = length - 1; index >= 0; index--) {
      // A newline at the end of the file ends the last line and starts none.
      if (buffer[index] !== 10 || end - length + index === size - 1) continue;
      found += 1;
      if (found === lines) return end - length + index + 1;
    }
    end -= length;
  }
  return 0;
}
