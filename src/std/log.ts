/** Structured logging with klog's levels. A logger is handed down; there is no global one. */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `error` may be anything that was thrown; its message and cause chain are printed, its stack at level 6. */
  error(message: string, error?: unknown, fields?: LogFields): void;
  /** The logger if verbosity `level` is on for this module, else undefined: `log.v(4)?.info("Syncing", { pod })`. */
  v(level: number): Logger | undefined;
  /** A logger that names its module (for the header and `--vmodule`) and adds fields to every line. */
  child(module: string, fields?: LogFields): Logger;
}

/** Never put a secret here. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface LogOptions {
  /** `--logging-format` */
  readonly format: "text" | "json";
  /** `-v` */
  readonly verbosity: number;
  /** `--vmodule`: the first pattern (glob: `*`, `?`) that fits a module's name sets its verbosity. */
  readonly vmodule: readonly VmodulePattern[];
  /** `--log-flush-frequency`, milliseconds */
  readonly flushFrequencyMs: number;
  /** `--log-*-split-stream`: errors to stderr, all else to stdout; otherwise everything goes to stderr. */
  readonly splitStream: boolean;
  /** `--log-*-info-buffer-size`, bytes; only with `splitStream`. 0 writes at once. */
  readonly infoBufferSize: number;
}

export interface VmodulePattern {
  readonly pattern: string;
  readonly level: number;
}

export interface RootLogger extends Logger, Disposable {
  /** Writes what is buffered, at once. */
  flush(): void;
  /** Changes `-v` while running. */
  setVerbosity(level: number): void;
}

export declare function createLogger(options?: Partial<LogOptions>): RootLogger;
