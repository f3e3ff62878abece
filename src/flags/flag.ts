/**
 * A flag is a row of data. The parser, `--help`, the configuration file, shell completion and the reference pages read
 * the same row, so a fact about a flag is said once.
 */

/** What the text of a flag may be. `parse` and `print` are inverse up to spelling: `print(parse("60s"))` is `1m0s`. */
export interface ValueType<T> {
  /** As `--help` shows it: `int32`, `duration`, `strings`. */
  readonly name: string;
  /** What is allowed, to end the sentence "must be …". */
  readonly allowed: string;
  /** Throws `ValueError`. */
  parse(text: string): T;
  /** Go's spelling; "" for a value that is not set. */
  print(value: T): string;
  /** What another occurrence of the flag does to the value so far; without it the last occurrence wins. */
  add?(previous: T, next: T): T;
  /** The text that the bare flag, without a value, stands for. */
  readonly bare?: string;
  /** The value in the form the configuration file has; the value itself when absent. */
  toJson?(value: T): unknown;
  /** Throws `ValueError`; the inverse of `toJson`. The file's schema has checked the JSON type before. */
  fromJson?(json: unknown): T;
  /** Every text that is allowed, where that is a short list. */
  readonly choices?: readonly string[];
  /** A directory or file name, for completion and for resolving against the configuration file's directory. */
  readonly path?: "file" | "directory";
  /** One right text other than the usual defaults, for tests and the reference. */
  readonly sample: string;
  /** One wrong text; absent where every text is right. */
  readonly wrong?: string;
}

export interface Flag<T = unknown> {
  readonly type: ValueType<T>;
  readonly default: T;
  /** One letter: `h` for `-h`. */
  readonly short?: string;
  readonly section: string;
  readonly meaning: string;
  /** Says the default in words where its text does not. */
  readonly defaultNote?: string;
  /** Path of the field in the configuration file: `authentication.anonymous.enabled`. */
  readonly config?: string;
  /** The default once a configuration file is given, where it differs from that of the flag. */
  readonly fileDefault?: T;
  /** A value other than the default needs this feature gate. */
  readonly gate?: string;
  /** What to do instead. The flag still works. */
  readonly deprecated?: string;
  /** Flags (exact, or with a trailing `*`) that must not be given beside this one. */
  readonly excludes?: readonly string[];
  /** Flags that must be given when this one is. */
  readonly requires?: readonly string[];
  /** Why the flag has no effect in this build: only its default is accepted. Absent for a flag that has its effect. */
  readonly inert?: string;
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

/** A row. `options.section` is usually filled in by `section`. */
export function flag<T>(
  type: ValueType<T>,
  value: NoInfer<T>,
  meaning: string,
  options: Partial<RowOptions<NoInfer<T>>> = {},
): Flag<T> {
  return { section: "", ...options, type, default: value, meaning };
}

/** Puts rows under a heading. */
export function section<T extends FlagTable>(title: string, rows: T): T {
  return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, { ...row, section: title }])) as T;
}

/** The text of a flag is not what its type allows. The message completes "must be …" or is a sentence of its own. */
export class ValueError extends Error {
  override readonly name = "ValueError";
}

/** What an operator wrote cannot be used: every problem found, not only the first. */
export class FlagError extends Error {
  override readonly name = "FlagError";
  readonly code = "FLAGS_INVALID";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(joinBounded(problems));
    this.problems = problems;
  }
}

/** Enough to mend a file in one go, little enough to read. */
const problemsShownMax = 20;

function joinBounded(problems: readonly string[]): string {
  const shown = problems.slice(0, problemsShownMax);
  const more = problems.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

/** Kubernetes spells flags with dashes and accepts underscores. */
export function normaliseName(name: string): string {
  return name.replaceAll("_", "-");
}

export function printValue<T>(row: Flag<T>, value: T): string {
  return row.type.print(value);
}

/** The default as people read it, `""` when there is none. */
export function defaultText(row: Flag): string {
  return row.defaultNote ?? row.type.print(row.default);
}
