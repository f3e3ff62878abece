/** Converts a program's command line to its options, or to text to print before it exits. */
import { FlagError, type FlagTable, type ParsedFlags } from "./flag.ts";
import { allGates } from "./gate-tables/all.ts";
import { FeatureGates, type GateTable, gateProblems, gateWarnings } from "./gates.ts";
import { renderHelp } from "./help.ts";
import { isChanged, parseCommandLine, requestsHelp } from "./parse.ts";
import type { GateSettings } from "./types/gate-settings.ts";

export interface Program<T extends FlagTable> {
  /** `svc apiserver` */
  readonly name: string;
  readonly summary: string;
  readonly flags: T;
  readonly gates?: GateTable;
  /** The gates of the release that the flags select, for a program that can emulate others. */
  readonly gatesFor?: (values: ParsedFlags<T>) => GateTable;
  /** Validates what rows cannot express; returns one sentence for each problem. */
  readonly check?: (values: ParsedFlags<T>) => readonly string[];
}

export interface Invocation<T extends FlagTable> {
  readonly kind: "run";
  readonly flags: ParsedFlags<T>;
  /** Names of the flags on the command line. */
  readonly given: ReadonlySet<string>;
  readonly gates: FeatureGates;
  /** `v1.33.0`, or the version that `--version=v…` sets. */
  readonly version: string;
  readonly warnings: readonly string[];
}

export interface Exit {
  readonly kind: "exit";
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Environment {
  /** The version of this build, `v1.33.0`. */
  readonly version: string;
  readonly columns?: number;
}

/** Never throws for mistakes on the command line: they are an `Exit` with code 1 and one line each on stderr. */
export function invoke<const T extends FlagTable>(
  program: Program<T>,
  argv: readonly string[],
  surroundings: Environment,
): Invocation<T> | Exit {
  if (requestsHelp(argv)) return exit(0, helpText(program, surroundings.columns));
  try {
    const { values, given, warnings } = parseCommandLine(program.flags, argv);
    const printed = versionText(program.name, String(values.version ?? ""), surroundings.version);
    if (printed !== undefined) return exit(0, printed);
    const settings = (values["feature-gates"] ?? {}) as GateSettings;
    const table = program.gatesFor?.(values) ?? program.gates ?? {};
    const gates = createGates(program, table, { values, given, settings });
    return {
      kind: "run",
      flags: values,
      given,
      gates,
      version: reportedVersion(String(values.version ?? ""), surroundings.version),
      warnings: [...warnings, ...gateWarnings(table, settings), ...laterGates(program.gates, table)],
    };
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    return exit(1, "", errorText(program.name, error));
  }
}

/** A warning with the gates that the release which the program emulates does not have. */
function laterGates(all: GateTable | undefined, emulated: GateTable): readonly string[] {
  const later = Object.keys(all ?? {}).filter((name) => !Object.hasOwn(emulated, name));
  return later.length === 0 ? [] : [`The emulated release leaves out feature gates of later ones: ${later.join(", ")}`];
}

/** Wrapped to `columns`, or to the terminal. */
export function helpText(
  program: Omit<Program<FlagTable>, "check" | "gatesFor">,
  columns: number | undefined = process.stdout.columns,
): string {
  return renderHelp(program.flags, {
    name: program.name,
    summary: program.summary,
    ...(columns === undefined ? {} : { columns }),
    ...(program.gates === undefined ? {} : { gates: new FeatureGates(program.gates) }),
  });
}

/** The text on stderr for a mistake on the command line. */
export function errorText(name: string, error: FlagError): string {
  return `${error.message}\nSee ${name} --help.\n`;
}

/** The output of `--version` and `--version=raw`; undefined when the program runs. */
export function versionText(name: string, value: string, version: string): string | undefined {
  if (value === "true") return `${name.replace(/^svc /, "")} ${version}\n`;
  if (value !== "raw") return undefined;
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  return `${JSON.stringify({ major, minor, gitVersion: version, platform: `${process.platform}/${process.arch}` })}\n`;
}

/** `--version=v1.33.4-site.1` makes the program report that version. */
export function reportedVersion(value: string, version: string): string {
  return value.startsWith("v") ? value : version;
}

/** The flags on the command line whose gate is disabled. */
function findGatedFlags(
  table: FlagTable,
  values: Readonly<Record<string, unknown>>,
  given: ReadonlySet<string>,
  gates: FeatureGates,
): string[] {
  return [...given].flatMap((name) => {
    const row = table[name];
    if (row?.gate === undefined || gates.has(row.gate) || !isChanged(row, values[name])) return [];
    return [`--${name} needs feature gate ${row.gate}: add --feature-gates=${row.gate}=true`];
  });
}

interface ParsedProgram<T extends FlagTable> {
  readonly values: ParsedFlags<T>;
  readonly given: ReadonlySet<string>;
  readonly settings: GateSettings;
}

function createGates<T extends FlagTable>(
  program: Program<T>,
  table: GateTable,
  { values, given, settings }: ParsedProgram<T>,
): FeatureGates {
  const gates = new FeatureGates(table, settings);
  const problems = [
    ...gateProblems(table, settings, allGates).map((problem) => `--feature-gates: ${problem}`),
    ...findGatedFlags(program.flags, values, given, gates),
    ...(program.check?.(values) ?? []),
  ];
  if (problems.length > 0) throw new FlagError(problems);
  return gates;
}

function exit(code: number, stdout: string, stderr = ""): Exit {
  return { kind: "exit", code, stdout, stderr };
}
