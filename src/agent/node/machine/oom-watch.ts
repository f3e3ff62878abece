/** Notices in the kernel's log that the whole machine ran out of memory; a pod that did shows it in its own status. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Clock } from "../../../std/time/clock.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { RecordNodeEvent } from "../node-events.ts";

/** Records in the order of their writing; undefined: there are no more for now. */
export interface KernelLog extends AsyncDisposable {
  read(): Promise<string | undefined>;
}

export interface OomWatchOptions {
  readonly recordEvent: RecordNodeEvent;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** In place of the machine's. */
  readonly open?: () => Promise<KernelLog>;
}

const KERNEL_LOG = "/dev/kmsg";
const CHECK_INTERVAL_MS = 5_000;
/** As long as the kernel makes a record. */
const RECORD_BYTES_MAX = 8192;
/** Not `Memory cgroup out of memory`, which is a container's own trouble. */
const OUT_OF_MEMORY = /^[^;]*;Out of memory: Kill(?:ed)? process (\d+) \((.+?)\)/;

/** Tells of what happens from now on, until the signal aborts. Never rejects: where the log is closed, nobody looks. */
export async function watchOom({ recordEvent: event, clock, log, signal, open = openKernelLog }: OomWatchOptions): Promise<void> {
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
    if (!signal.aborted) log.info("The kernel's log cannot be read: no SystemOOM events", { error: String(error) });
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
      // Records that nobody had read yet were overwritten.
      if (code !== "EPIPE") throw error;
    }
  }
}
