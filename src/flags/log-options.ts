/** Converts the logging flags, which all programs share, to the options of the logger. */
import type { LogOptions } from "../std/log/logger.ts";
import type { VmodulePattern } from "./types/logging.ts";

export interface LoggingFlags {
  readonly v: number;
  readonly vmodule: readonly VmodulePattern[];
  readonly "logging-format": "text" | "json";
  /** Milliseconds. */
  readonly "log-flush-frequency": number;
  readonly "log-text-split-stream"?: boolean;
  readonly "log-text-info-buffer-size"?: number;
  readonly "log-json-split-stream"?: boolean;
  readonly "log-json-info-buffer-size"?: number;
}

/** The sentence for a combination that Kubernetes refuses too. */
export function validateLogging(flags: Pick<LoggingFlags, "vmodule" | "logging-format">): readonly string[] {
  if (flags.vmodule.length === 0 || flags["logging-format"] === "text") return [];
  return ["--vmodule is only supported for the text log format: remove it or --logging-format=json"];
}

/** `isContextual`: the gate ContextualLogging, of programs that have it. */
export function logOptions(flags: LoggingFlags, isContextual = true): LogOptions {
  const format = flags["logging-format"];
  return {
    format,
    verbosity: flags.v,
    vmodule: flags.vmodule,
    flushFrequencyMs: flags["log-flush-frequency"],
    splitStream: flags[`log-${format}-split-stream`] ?? false,
    infoBufferSize: flags[`log-${format}-info-buffer-size`] ?? 0,
    isContextual,
  };
}
