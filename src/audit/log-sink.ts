/** Writes audit events to a file or to standard output. */
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { AuditSink } from "./backend.ts";
import { type AuditEvent, encodeEvent, formatLegacy } from "./event.ts";
import { LogFile, type LogFileOptions } from "./log-file.ts";

export interface LogSinkOptions extends Omit<LogFileOptions, "path"> {
  /** `-`: standard output. */
  readonly path: string;
  readonly format: "legacy" | "json";
  /** The apiVersion of events. */
  readonly version: string;
}

interface Lines extends AsyncDisposable {
  append(text: string): Promise<void>;
}

/** Rejects with one sentence when the file cannot be opened. */
export async function openLogSink(
  options: LogSinkOptions,
  deps: { readonly clock: Clock; readonly log: Logger },
): Promise<AuditSink> {
  const { path, format, version } = options;
  const lines = path === "-" ? standardOutput : await openFile(options, deps);
  const encode = (event: AuditEvent): string =>
    `${format === "legacy" ? formatLegacy(event) : encodeEvent(event, version)}\n`;
  return {
    name: "log",
    sizeOf: (event) => Buffer.byteLength(encodeEvent(event, version)) + 1,
    send: (events) => lines.append(events.map(encode).join("")),
    [Symbol.asyncDispose]: () => Promise.resolve(lines[Symbol.asyncDispose]()),
  };
}

async function openFile(options: LogSinkOptions, deps: { readonly clock: Clock; readonly log: Logger }) {
  try {
    return await LogFile.open(options, deps);
  } catch (cause) {
    throw new Error(`Cannot open --audit-log-path="${options.path}": ${(cause as Error).message}`, { cause });
  }
}

const standardOutput: Lines = {
  append: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  async [Symbol.asyncDispose]() {},
};
