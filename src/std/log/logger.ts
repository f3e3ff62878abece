/** Structured logging with klog's levels. A logger is a parameter; there is no global one. */
import { pino } from "pino";
import { matchesGlob } from "../glob.ts";
import { type Clock, systemClock, type Timer } from "../time/clock.ts";
import { callerLocation } from "./caller.ts";
import { formatText, jsonFields, type LogLine, truncate } from "./format.ts";

export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `error` may be anything that was thrown; the line has its message and cause chain, from `-v=6` on its stack. */
  error(message: string, error?: unknown, fields?: LogFields): void;
  /** Writes a text of several lines as it is, without quotes, as klog's unstructured messages. */
  text(text: string): void;
  /** The logger if verbosity `level` is on for this module, else undefined: `log.v(4)?.info("Syncing", { pod })`. */
  v(level: number): Logger | undefined;
  /** A logger that names its module (for `--vmodule` and JSON) and adds fields to every line. */
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
  /** The gate ContextualLogging: without it lines have neither the fields nor, in JSON, the name of their logger. */
  readonly isContextual: boolean;
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

export interface LogDependencies {
  readonly clock?: Clock | undefined;
  readonly pid?: number | undefined;
  readonly stdout?: LogSink | undefined;
  readonly stderr?: LogSink | undefined;
}

/** Where lines go. `write` gets whole lines, newline included. */
export interface LogSink {
  write(line: string): unknown;
  flushSync(): void;
}

const DEFAULTS: LogOptions = {
  format: "text",
  verbosity: 0,
  vmodule: [],
  flushFrequencyMs: 5000,
  splitStream: false,
  infoBufferSize: 0,
  isContextual: true,
};

const ROOT_MODULE = "svc";

/** Stacks are printed from this verbosity on. */
const STACK_LEVEL = 6;

/** The process' logger. Disposing it, or the end of the process, writes what is buffered. */
export function createLogger(options: Partial<LogOptions> = {}, dependencies: LogDependencies = {}): RootLogger {
  return new Root({ ...DEFAULTS, ...options }, dependencies);
}

/** A logger that writes nothing: for tests, and tools that only print. */
export const silentLogger: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  text: () => {},
  v: () => undefined,
  child: () => silentLogger,
};

type Write = (line: LogLine) => void;

class ModuleLogger implements Logger {
  readonly #root: Root;
  readonly #module: string;
  readonly #level: number;
  readonly #fields: LogFields;
  /** This module's level in `--vmodule`. */
  readonly #override: number | undefined;

  constructor(root: Root, module: string, level: number, fields: LogFields) {
    this.#root = root;
    this.#module = module;
    this.#level = level;
    this.#fields = fields;
    this.#override = root.override(module);
  }

  info(message: string, fields?: LogFields): void {
    this.#write("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write("warning", message, fields);
  }

  error(message: string, error?: unknown, fields?: LogFields): void {
    const err = error === undefined ? {} : { err: error };
    const stack = this.#threshold() >= STACK_LEVEL && error instanceof Error ? { stack: error.stack } : {};
    this.#write("error", message, { ...err, ...fields, ...stack });
  }

  text(text: string): void {
    this.#write("info", text, undefined, true);
  }

  v(level: number): Logger | undefined {
    if (level > this.#threshold()) return undefined;
    return level === this.#level ? this : new ModuleLogger(this.#root, this.#module, level, this.#fields);
  }

  child(module: string, fields?: LogFields): Logger {
    const isPlain = fields === undefined || !this.#root.isContextual;
    const all = isPlain ? this.#fields : { ...this.#fields, ...fields };
    return new ModuleLogger(this.#root, module, this.#level, all);
  }

  #threshold(): number {
    return this.#override ?? this.#root.verbosity;
  }

  #write(severity: LogLine["severity"], message: string, fields: LogFields | undefined, isText = false): void {
    this.#root.write({
      severity,
      time: this.#root.clock.now(),
      module: this.#root.isContextual ? this.#module : ROOT_MODULE,
      caller: callerLocation(),
      level: this.#level,
      message,
      isText,
      fields: fields === undefined ? this.#fields : { ...this.#fields, ...fields },
    });
  }
}

class Root implements RootLogger {
  verbosity: number;
  readonly clock: Clock;
  readonly #options: LogOptions;
  readonly #sinks: readonly LogSink[];
  readonly #writers: Readonly<Record<LogLine["severity"], Write>>;
  readonly #overrides = new Map<string, number | undefined>();
  readonly #logger: ModuleLogger;
  readonly #atExit = (): void => this.flush();
  #flushTimer: Timer | undefined;

  constructor(options: LogOptions, { clock = systemClock, pid = process.pid, ...sinks }: LogDependencies) {
    this.#options = options;
    this.clock = clock;
    this.verbosity = options.verbosity;
    const stderr = sinks.stderr ?? destination(2, 0);
    const stdout = options.splitStream ? (sinks.stdout ?? destination(1, options.infoBufferSize)) : stderr;
    this.#sinks = options.splitStream ? [stderr, stdout] : [stderr];
    const writer = options.format === "json" ? jsonWriter : (sink: LogSink) => textWriter(sink, pid);
    const error = writer(stderr);
    const info = options.splitStream ? writer(stdout) : error;
    this.#writers = { error, info, warning: info };
    this.#logger = new ModuleLogger(this, ROOT_MODULE, 0, {});
    if (this.#buffers()) process.on("exit", this.#atExit);
  }

  info(message: string, fields?: LogFields): void {
    this.#logger.info(message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#logger.warn(message, fields);
  }

  error(message: string, error?: unknown, fields?: LogFields): void {
    this.#logger.error(message, error, fields);
  }

  text(text: string): void {
    this.#logger.text(text);
  }

  v(level: number): Logger | undefined {
    return this.#logger.v(level);
  }

  child(module: string, fields?: LogFields): Logger {
    return this.#logger.child(module, fields);
  }

  setVerbosity(level: number): void {
    this.verbosity = level;
  }

  get isContextual(): boolean {
    return this.#options.isContextual;
  }

  override(module: string): number | undefined {
    if (this.#options.vmodule.length === 0) return undefined;
    if (!this.#overrides.has(module)) {
      this.#overrides.set(module, this.#options.vmodule.find((rule) => matchesGlob(rule.pattern, module))?.level);
    }
    return this.#overrides.get(module);
  }

  write(line: LogLine): void {
    this.#writers[line.severity](line);
    if (this.#buffers() && this.#options.flushFrequencyMs > 0) {
      this.#flushTimer ??= this.clock.timer(this.#options.flushFrequencyMs, () => this.flush());
    }
  }

  /** Whether lines are buffered; otherwise each is written at once. */
  #buffers(): boolean {
    return this.#options.splitStream && this.#options.infoBufferSize > 0;
  }

  flush(): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = undefined;
    for (const sink of this.#sinks) sink.flushSync();
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#atExit);
    this.flush();
  }
}

/** Lines kept for a destination that cannot be written; further ones are dropped. */
const BACKLOG_BYTES_MAX = 4 * 2 ** 20;

/** How many times a flush waits 100 ms for a reader that does not read. */
const FLUSH_RETRIES = 10;

/** A file descriptor, written synchronously so that the last line before a crash is there. */
function destination(fd: number, bufferSize: number): LogSink {
  let retries = 0;
  const sink = pino.destination({
    fd,
    sync: true,
    minLength: bufferSize,
    maxWrite: Math.max(16 * 1024, bufferSize + 1),
    maxLength: BACKLOG_BYTES_MAX + bufferSize,
    // A slow reader must not block the program: the lines are written with the next one. Only a flush waits.
    retryEAGAIN: () => retries-- > 0,
  });
  // A log that cannot be written does not stop the program; sonic-boom keeps the lines and retries with the next.
  sink.on("error", () => {});
  return {
    write: (line) => sink.write(line),
    flushSync: () => {
      retries = FLUSH_RETRIES;
      try {
        sink.flushSync();
      } catch {
        // As above.
      }
      retries = 0;
    },
  };
}

function textWriter(sink: LogSink, pid: number): Write {
  return (line) => void sink.write(formatText(line, pid));
}

/** Kubernetes' JSON log format: `ts` in milliseconds, `v` on all lines but errors. */
function jsonWriter(sink: LogSink): Write {
  let time = 0;
  const logger = pino(
    {
      base: null,
      level: "info",
      formatters: { level: () => ({}) },
      timestamp: () => `"ts":${time.toFixed(3)}`,
    },
    { write: (line: string) => void sink.write(line) },
  );
  return (line) => {
    time = line.time;
    logger.info(jsonFields(line), truncate(line.message));
  };
}
