/** Parses a command line into one typed value for each flag. yargs-parser splits the words; the table has the types. */
import Parser from "yargs-parser";
import { findNearest } from "./distance.ts";
import { type Flag, FlagError, type FlagTable, normaliseName, type ParsedFlags, ValueError } from "./flag.ts";

export interface CommandLine<T extends FlagTable> {
  readonly values: ParsedFlags<T>;
  /** Names of the flags on the command line. */
  readonly given: ReadonlySet<string>;
  /** Words that are not flags; empty unless they are allowed. */
  readonly positionals: readonly string[];
  /** One line each. */
  readonly warnings: readonly string[];
}

export interface ParseOptions {
  /** Receives deprecation warnings; stderr when absent. */
  readonly warn?: (line: string) => void;
  /** Allows words that are not flags. */
  readonly positional?: boolean;
}

/** The value of every flag in `table`. Throws `FlagError` naming each flag, its value and what is allowed. */
export function parseFlags<const T extends FlagTable>(
  table: T,
  argv: readonly string[],
  options: ParseOptions = {},
): ParsedFlags<T> {
  const line = parseCommandLine(table, argv, options);
  const warn = options.warn ?? ((text: string) => void process.stderr.write(`${text}\n`));
  for (const warning of line.warnings) warn(warning);
  return line.values;
}

/** As `parseFlags`, with the names of the flags on the command line and the warnings. */
export function parseCommandLine<const T extends FlagTable>(
  table: T,
  argv: readonly string[],
  options: Pick<ParseOptions, "positional"> = {},
): CommandLine<T> {
  const { texts, positionals, problems } = parseWords(table, argv, options.positional ?? false);
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(table)) {
    const given = texts.get(name);
    values[name] = given === undefined ? row.default : parseValue(name, row, given, problems);
  }
  const given = new Set(texts.keys());
  if (problems.length === 0) problems.push(...findConflicts(table, values, given));
  if (problems.length > 0) throw new FlagError(problems);
  return { values: values as ParsedFlags<T>, given, positionals, warnings: flagWarnings(table, values, given) };
}

/** Whether the words contain `--help`, even if other words are invalid. */
export function requestsHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  const words = end < 0 ? argv : argv.slice(0, end);
  return words.some((word) => word === "-h" || word === "--help" || word === "--help=true");
}

interface ParsedWords {
  /** The texts of each flag, in order. */
  readonly texts: Map<string, readonly string[]>;
  readonly positionals: readonly string[];
  readonly problems: string[];
}

function parseWords(table: FlagTable, argv: readonly string[], positional: boolean): ParsedWords {
  const names = Object.keys(table);
  const problems = findSingleDashes(table, argv);
  // yargs-parser would report each letter behind a single dash as an unknown flag.
  if (problems.length > 0) return { texts: new Map(), positionals: [], problems };
  const shorts = new Map(names.flatMap((name) => (table[name]?.short ? [[table[name].short, name]] : [])));
  const words = argv.map((word, index) => normaliseWord(table, shorts, word, argv.slice(0, index).includes("--")));
  const takesValue = names.filter((name) => table[name]?.type.bare === undefined);
  const result = Parser.detailed(words, {
    string: names,
    array: [],
    narg: Object.fromEntries(takesValue.map((name) => [name, 1])),
    configuration: {
      "boolean-negation": false,
      "camel-case-expansion": false,
      "dot-notation": false,
      "duplicate-arguments-array": true,
      "parse-numbers": false,
      "parse-positional-numbers": false,
      "greedy-arrays": false,
      "populate--": true,
    },
  });
  const texts = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(result.argv as Record<string, unknown>)) {
    if (name === "_" || name === "--") continue;
    if (!Object.hasOwn(table, name)) {
      problems.push(unknownFlagProblem(name, names));
      continue;
    }
    const all = (Array.isArray(value) ? value : [value]).map((text) => (typeof text === "string" ? text : undefined));
    if (all.includes(undefined)) problems.push(missingValueProblem(name, table[name]!));
    else texts.set(name, all as string[]);
  }
  if (result.error !== null && problems.length === 0) {
    // The only error of yargs-parser: "Not enough arguments following: secure-port".
    const name = /: (\S+)$/.exec(result.error.message)?.[1] ?? "";
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    problems.push(row === undefined ? result.error.message : missingValueProblem(name, row));
  }
  const rest = [...(result.argv._ ?? []), ...((result.argv["--"] as string[] | undefined) ?? [])].map(String);
  if (!positional) problems.push(...rest.map((word) => `unexpected argument "${word}": flags start with --`));
  return { texts, positionals: rest, problems };
}

/** `-secure-port=1`: a long name behind one dash, which Go's flag package accepts and Kubernetes does not. */
function findSingleDashes(table: FlagTable, argv: readonly string[]): string[] {
  const end = argv.indexOf("--");
  return (end < 0 ? argv : argv.slice(0, end)).flatMap((word) => {
    const name = normaliseName(/^-([A-Za-z][^=\s]+)/.exec(word)?.[1] ?? "");
    return Object.hasOwn(table, name) ? [`-${name}: a flag's name stands behind two dashes: --${name}`] : [];
  });
}

/** A word for yargs-parser: dashes in names, long names for short ones, a value for flags without one. */
function normaliseWord(table: FlagTable, shorts: ReadonlyMap<string, string>, word: string, afterEnd: boolean): string {
  const match = afterEnd ? null : /^(--?)([^=\s]+)(=[\s\S]*)?$/.exec(word);
  if (match === null) return word;
  const [, dashes, rawName = "", value] = match;
  const long = dashes === "--" ? normaliseName(rawName) : (shorts.get(rawName) ?? rawName);
  if (!Object.hasOwn(table, long)) return word;
  const bare = table[long]?.type.bare;
  return `--${long}${value ?? (bare === undefined ? "" : `=${bare}`)}`;
}

function parseValue(name: string, row: Flag, texts: readonly string[], problems: string[]): unknown {
  let value: unknown;
  let first = true;
  for (const text of texts) {
    try {
      const next = row.type.parse(text);
      value = first || row.type.add === undefined ? next : row.type.add(value, next);
      first = false;
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      problems.push(`--${name}=${quote(text)}: ${error.message}`);
    }
  }
  return first ? row.default : value;
}

/** The flags that cannot be combined, and those that have no effect. */
function findConflicts(
  table: FlagTable,
  values: Readonly<Record<string, unknown>>,
  given: ReadonlySet<string>,
): string[] {
  const problems: string[] = [];
  for (const name of given) {
    const row = table[name]!;
    if (row.inert !== undefined && isChanged(row, values[name])) problems.push(inertProblem(name, row, values[name]));
    for (const other of row.excludes ?? []) {
      for (const clash of [...given].filter((candidate) => candidate !== name && matches(other, candidate))) {
        problems.push(`--${name} and --${clash} exclude each other: give one of them`);
      }
    }
    const requires = row.inert !== undefined || values[name] === false ? [] : (row.requires ?? []);
    for (const other of requires) {
      const isMissing = !given.has(other) || (isSet(row, values[name]) && !isSet(table[other]!, values[other]));
      if (isMissing) problems.push(`--${name} needs --${other} as well`);
    }
  }
  return [...new Set(problems)];
}

/** Whether the value differs from the default. */
export function isChanged(row: Flag, value: unknown): boolean {
  return row.type.print(value) !== row.type.print(row.default);
}

/** Whether the value is one: not an empty text or list, as of a variable of a script that is not set, and not false. */
function isSet(row: Flag, value: unknown): boolean {
  return !["", "false"].includes(row.type.print(value));
}

function inertProblem(name: string, row: Flag, value: unknown): string {
  const text = row.type.print(row.default);
  const only = text === "" ? "leave it unset" : `only its default ${quote(text)} is accepted`;
  return `--${name}=${quote(row.type.print(value))}: the flag has no effect because ${row.inert}; ${only}`;
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function flagWarnings(
  table: FlagTable,
  values: Readonly<Record<string, unknown>>,
  given: ReadonlySet<string>,
): string[] {
  return [...given].flatMap((name) => {
    const row = table[name]!;
    const isRedundant = row.redundant !== undefined && isChanged(row, values[name]);
    return [
      ...(row.deprecated === undefined ? [] : [`Flag --${name} has been deprecated, ${row.deprecated}`]),
      ...(isRedundant ? [`Flag --${name} changes nothing: ${row.redundant}`] : []),
    ];
  });
}

function unknownFlagProblem(name: string, names: readonly string[]): string {
  const guess = findNearest(name, names);
  return `unknown flag --${name}${guess === undefined ? "" : `: did you mean --${guess}?`}`;
}

function missingValueProblem(name: string, row: Flag): string {
  return `--${name}: a value is missing, it must be ${row.type.allowed}`;
}

/** The text in quotes, cut to a length that is readable in a terminal. */
function quote(text: string): string {
  const lengthMax = 200;
  return JSON.stringify(text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text);
}
