/** Detects out-of-memory kills of the whole system in the kernel's log; those of a cgroup are in the pod's status. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { RecordNodeEvent } from "../node-events.ts";

/** Returns the next record; undefined: there are no more for now. */
export interface KernelLog extends AsyncDisposable {
  read(): Promise<string | undefined>;
}

export interface OomWatchOptions {
  readonly recordEvent: RecordNodeEvent;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Replaces the machine's. */
  readonly open?: () => Promise<KernelLog>;
}

const KERNEL_LOG = "/dev/kmsg";
const CHECK_INTERVAL_MS = 5_000;
/** The kernel's longest record. */
const RECORD_BYTES_MAX = 8192;
/** Not `Memory cgroup out of memory`, which is of one container. */
const OUT_OF_MEMORY = /^[^;]*;Out of memory: Kill(?:ed)? process (\d+) \((.+?)\)/;

/** Records events for new kills until the signal aborts. Never rejects; when the log cannot be read it does nothing. */
export async function watchOom({
  recordEvent: event,
  clock,
  log,
  signal,
  open = openKernelLog,
}: OomWatchOptions): Promise<void> {
  try {
    await using kernel = await open();
    while ((await kernel.read()) !== undefined) signal.throwIfAborted();
    while (!signal.aborted) {
      await clock.sleep(CHECK_INTERVAL_MS, signal);
      for (let record = await kernel.read(); record !== undefined; record = await kernel.read()) {
        const [, pid, process] = OUT_OF_MEMORY.exec(record) ?? [];
        if (pid === undefined) continue;
        event("Warning", "SystemOOM", `System OOM encountered, victim process: ${process}, pid: ${pid}`);
      }
    }
  } catch (error) {
    if (!signal.aborted) log.info("Cannot read the kernel's log: no SystemOOM events", { error: String(error) });
  }
}

async function openKernelLog(): Promise<KernelLog> {
  const file = await open(KERNEL_LOG, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(RECORD_BYTES_MAX);
  return { read: () => readRecord(file, buffer), [Symbol.asyncDispose]: () => file.close() };
}

async function readRecord(file: FileHandle, buffer: Buffer): Promise<string | undefined> {
  for (;;) {
    try {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      return buffer.toString("utf8", 0, bytesRead);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN") return undefined;
      // EPIPE: unread records were overwritten.
      if (code !== "EPIPE") throw error;
    }
  }
}
