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

export interface AuditLines extends AsyncDisposable {
  append(text: string): Promise<void>;
}

export interface LogSinkDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The threads of the process, which have one log; undefined: there is one thread. */
  readonly threads?: { openAuditLog(open: () => Promise<AuditLines>): Promise<AuditLines> } | undefined;
}

/** Rejects with one sentence when the file cannot be opened. */
export async function openLogSink(options: LogSinkOptions, deps: LogSinkDeps): Promise<AuditSink> {
  const { path, format, version } = options;
  const { threads } = deps;
  const open = async (): Promise<AuditLines> => (path === "-" ? standardOutput : await openFile(options, deps));
  const lines = await (threads === undefined ? open() : threads.openAuditLog(open));
  const encode = (event: AuditEvent): string =>
    `${format === "legacy" ? formatLegacy(event) : encodeEvent(event, version)}\n`;
  return {
    name: "log",
    sizeOf: (event) => Buffer.byteLength(encodeEvent(event, version)) + 1,
    send: (events) => lines.append(events.map(encode).join("")),
    [Symbol.asyncDispose]: () => Promise.resolve(lines[Symbol.asyncDispose]()),
  };
}

async function openFile(options: LogSinkOptions, deps: LogSinkDeps): Promise<AuditLines> {
  try {
    return await LogFile.open(options, deps);
  } catch (cause) {
    throw new Error(`Cannot open --audit-log-path="${options.path}": ${(cause as Error).message}`, { cause });
  }
}

const standardOutput: AuditLines = {
  append: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
    }),
  async [Symbol.asyncDispose]() {},
};
