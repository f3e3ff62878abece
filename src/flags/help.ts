/** Renders `--help`: flags by section, with type and default, wrapped to the terminal. */
import { defaultText, type Flag, type FlagTable } from "./flag.ts";
import type { FeatureGates } from "./gates.ts";

export interface HelpOptions {
  /** `svc apiserver` */
  readonly name: string;
  /** A sentence about the program. */
  readonly summary: string;
  /** The width of a line. */
  readonly columns?: number;
  readonly gates?: FeatureGates;
  /** The usage line with what belongs to it, in place of `NAME [flags]`. */
  readonly usage?: string;
}

const columnsMin = 60;
const columnsMax = 160;
const indent = 10;

export function renderHelp(table: FlagTable, options: HelpOptions): string {
  const columns = helpColumns(options.columns);
  const usage = options.usage?.trimEnd() ?? `Usage:\n  ${options.name} [flags]`;
  const lines = [...wrap(options.summary, columns, 0), "", usage];
  for (const [title, rows] of bySection(table)) {
    lines.push("", `${title}:`, "");
    for (const [name, row] of rows) lines.push(...renderFlag(name, row, columns));
  }
  if (options.gates !== undefined) lines.push(...renderGates(options.gates, columns));
  return `${lines.join("\n")}\n`;
}

/** The width of help in a terminal of this width; undefined: of no terminal. */
export function helpColumns(terminal: number | undefined): number {
  return Math.min(Math.max(terminal ?? 100, columnsMin), columnsMax);
}

/** Rows by section, sections in the order of their first row. */
export function bySection(table: FlagTable): ReadonlyMap<string, readonly (readonly [string, Flag])[]> {
  return Map.groupBy(Object.entries(table), ([, row]) => row.section);
}

function renderFlag(name: string, row: Flag, columns: number): string[] {
  return [
    `${row.short === undefined ? "      " : `  -${row.short}, `}${signature(name, row)}`,
    ...describe(row, columns),
  ];
}

/** `--secure-port int`, `--profiling`, `--version version[=true]`. */
export function signature(name: string, row: Flag): string {
  const { bare, name: type } = row.type;
  if (bare === undefined) return `--${name} ${type}`;
  return type === "bool" ? `--${name}` : `--${name} ${type}[=${bare}]`;
}

function describe(row: Flag, columns: number): string[] {
  const value = defaultText(row);
  const notes = [
    row.type.choices !== undefined && row.type.name !== "bool" && row.type.choices.length <= 12
      ? `One of ${row.type.choices.join(", ")}.`
      : "",
    row.gate === undefined ? "" : `Needs feature gate ${row.gate}.`,
    row.config === undefined ? "" : `In the file: ${row.config}.`,
    row.deprecated === undefined ? "" : `DEPRECATED: ${row.deprecated}`,
    row.inert === undefined ? "" : `No effect: ${row.inert}; only the default is accepted.`,
    row.redundant === undefined ? "" : `Changes nothing: ${row.redundant}.`,
    value === "" || (row.type.name === "bool" && value === "false") ? "" : `(default ${value})`,
  ];
  return wrap([row.meaning, ...notes].filter((note) => note !== "").join(" "), columns, indent);
}

function renderGates(gates: FeatureGates, columns: number): string[] {
  const names = gates.list().map(({ name, stage, enabled }) => `${name}=true|false (${stage} - default=${enabled})`);
  return ["", "Feature gates:", "", ...names.flatMap((line) => wrap(line, columns, 2))];
}

/** Wraps text to `columns` columns, with indentation; a longer word is a line. */
export function wrap(text: string, columns: number, indentation: number): string[] {
  const pad = " ".repeat(indentation);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && pad.length + line.length + 1 + word.length > columns) {
      lines.push(pad + line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return line === "" ? lines : [...lines, pad + line];
}
