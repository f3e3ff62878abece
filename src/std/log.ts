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
