/**
 * A flag is a row of data. The parser, `--help`, the configuration file, shell completion and the reference pages read
 * the same row, so that each fact about a flag is stated once.
 */

/** The values of a flag and their text. `print` returns the canonical text: `print(parse("60s"))` is `1m0s`. */
export interface ValueType<T> {
  /** The type in `--help`: `int32`, `duration`, `strings`. */
  readonly name: string;
  /** The allowed values, as the end of the sentence "must be …". */
  readonly allowed: string;
  /** Throws `ValueError`. */
  parse(text: string): T;
  /** Go's notation; "" for a value that is not set. */
  print(value: T): string;
  /** Adds another occurrence of the flag to the value so far; without it the last occurrence wins. */
  add?(previous: T, next: T): T;
  /** The text for a flag without a value. */
  readonly bare?: string;
  /** The value in the configuration file; the value itself when absent. */
  toJson?(value: T): unknown;
  /** Throws `ValueError`; the inverse of `toJson`. The file's schema has checked the JSON type. */
  fromJson?(json: unknown): T;
  /** All allowed texts, if they are few. */
  readonly choices?: readonly string[];
  /** A directory or file name, for completion and for resolving against the configuration file's directory. */
  readonly path?: "file" | "directory";
  /** A valid text that is not a usual default, for tests. */
  readonly sample: string;
  /** An invalid text; absent if every text is valid. */
  readonly wrong?: string;
}

export interface Flag<T = unknown> {
  readonly type: ValueType<T>;
  readonly default: T;
  /** One letter: `h` for `-h`. */
  readonly short?: string;
  readonly section: string;
  readonly meaning: string;
  /** Describes the default if its text does not. */
  readonly defaultNote?: string;
  /** Path of the field in the configuration file: `authentication.anonymous.enabled`. */
  readonly config?: string;
  /** The default with a configuration file, if it differs from that of the flag. */
  readonly fileDefault?: T;
  /** The feature gate that a value other than the default needs. */
  readonly gate?: string;
  /** The end of the warning for a deprecated flag, which still works. */
  readonly deprecated?: string;
  /** Flags (exact, or with a trailing `*`) that cannot be combined with this one. */
  readonly excludes?: readonly string[];
  /** Flags that this one requires, also when it is given its default. A switch that is off requires none. */
  readonly requires?: readonly string[];
  /** Why the flag has no effect in this build: only its default is accepted. Absent for a flag that has its effect. */
  readonly inert?: string;
  /** Why the flag changes nothing: every value has its effect. A value other than the default gets a warning. */
  readonly redundant?: string;
}

/** Rows by name, without dashes, in the order `--help` shows them. */
// biome-ignore lint/suspicious/noExplicitAny: a table holds rows of every value type, and Flag is invariant in it
export type FlagTable = Readonly<Record<string, Flag<any>>>;

/** The value of every flag of a table: `flags["secure-port"]` is a number. */
export type ParsedFlags<T extends FlagTable> = {
  readonly [K in keyof T]: T[K] extends Flag<infer V> ? V : never;
};

/** Every flag of a table at its default. */
export function defaultFlags<T extends FlagTable>(table: T): ParsedFlags<T> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, row.default])) as ParsedFlags<T>;
}

type RowOptions<T> = Omit<Flag<T>, "type" | "default" | "meaning">;

/** A row; `section` sets its section. */
export function flag<T>(
  type: ValueType<T>,
  value: NoInfer<T>,
  meaning: string,
  options: Partial<RowOptions<NoInfer<T>>> = {},
): Flag<T> {
  return { section: "", ...options, type, default: value, meaning };
}

/** Sets the section of rows. */
export function section<T extends FlagTable>(title: string, rows: T): T {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, { ...row, section: title }])) as T;
}

/** An invalid text for a flag. */
export class ValueError extends Error {
  override readonly name = "ValueError";
}

/** All problems of a command line or a configuration file. */
export class FlagError extends Error {
  override readonly name = "FlagError";
  readonly code = "FLAGS_INVALID";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(joinBounded(problems));
    this.problems = problems;
  }
}

/** The number of problems in an error message. */
const PROBLEMS_MAX = 20;

function joinBounded(problems: readonly string[]): string {
  const shown = problems.slice(0, PROBLEMS_MAX);
  const more = problems.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

/** Kubernetes accepts underscores in place of dashes. */
export function normaliseName(name: string): string {
  return name.replaceAll("_", "-");
}

export function printValue<T>(row: Flag<T>, value: T): string {
  return row.type.print(value);
}

/** The default in help, `""` when there is none. */
export function defaultText(row: Flag): string {
  return row.defaultNote ?? row.type.print(row.default);
}
