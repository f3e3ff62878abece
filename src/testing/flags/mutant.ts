/**
 * Mutants of the programs under test: the value of one flag, configuration field or feature gate is withheld after
 * parsing, so that the program behaves as if it ignored it. A test of its effect must then fail.
 */
import { type EffectiveConfig, loadAgentConfig } from "../../agent/config/load.ts";
import { agentFlags } from "../../agent/flags.ts";
import type { Flag, FlagTable } from "../../flags/flag.ts";
import { agentGates } from "../../flags/gate-tables/agent.ts";
import { FeatureGates } from "../../flags/gates.ts";
import { type Environment, type Exit, type Invocation, invoke, type Program } from "../../flags/program.ts";
import type { GateSettings } from "../../flags/types/gate-settings.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";

export interface Mutant {
  readonly kind: "flag" | "field" | "gate";
  readonly name: string;
}

/** Flags that the parser handles: they are removed from the command line. */
const parserFlags: ReadonlySet<string> = new Set([
  "config",
  "config-dir",
  "dry-run-config",
  "help",
  "print-systemd-unit",
  "version",
]);

let current: Mutant | undefined;

/** Runs with the mutant, which is the only one of the process. */
export async function withMutant<T>(mutant: Mutant, run: () => Promise<T>): Promise<T> {
  current = mutant;
  try {
    return await run();
  } finally {
    current = undefined;
  }
}

/** A short time for conditions that a mutant never meets. */
export function conditionTimeout(normalMs: number): number {
  return current === undefined ? normalMs : Math.min(normalMs, MUTANT_TIMEOUT_MS);
}

/** How long a test waits for what must not happen: a mutant gets time to do it on a busy machine. */
export function quietTime(normalMs: number): number {
  return current === undefined ? normalMs : MUTANT_TIMEOUT_MS;
}

const MUTANT_TIMEOUT_MS = 1500;

/** Fields that change how the file is loaded: their values are withheld from the text. */
const loadingFields: ReadonlySet<string> = new Set(["mergeDefaultEvictionSettings"]);

/** The text of a configuration file without the line of a withheld field that changes how the file is loaded. */
export function withoutWithheldLine(text: string): string {
  const name = withheldName("field");
  if (name === undefined || !loadingFields.has(name)) return text;
  const lines = text.split("\n");
  return lines.filter((line) => !line.startsWith(`${name}: `)).join("\n");
}

/** The command line without a withheld gate, and without a withheld flag that the parser handles. */
export function withoutWithheld(words: readonly string[]): readonly string[] {
  const name = withheldName("flag");
  const argv = words.map((word) => {
    const [, text] = /^--feature-gates=(.*)$/.exec(word) ?? [];
    if (text === undefined || withheldName("gate") === undefined) return word;
    const kept = text.split(",").filter((each) => !isWithheldGate(each.split("=")[0]?.split(":").at(-1) ?? ""));
    return `--feature-gates=${kept.join(",")}`;
  });
  if (name === undefined || !parserFlags.has(name)) return argv;
  return argv.filter((word) => word !== `--${name}` && !word.startsWith(`--${name}=`));
}

/** `invoke()` of a program under test. A withheld flag has its value in `baseline`, the flags of the harness. */
export function invokeMutant<const T extends FlagTable>(
  program: Program<T>,
  argv: readonly string[],
  surroundings: Environment,
  baseline: readonly string[] = [],
): Invocation<T> | Exit {
  const invocation = invoke(program, withoutWithheld(argv), surroundings);
  if (current === undefined || invocation.kind === "exit") return invocation;
  const base = invoke(program, baseline, surroundings);
  if (base.kind === "exit") throw new Error(base.stderr);
  const name = withheldName("flag");
  const isBase = name === undefined || !Object.hasOwn(invocation.flags, name);
  const flags = isBase ? invocation.flags : { ...invocation.flags, [name]: base.flags[name] };
  const given = new Set([...invocation.given].filter((each) => each !== name || base.given.has(each)));
  const settings = withoutGate((flags as Readonly<Record<string, unknown>>)["feature-gates"]);
  const table = program.gatesFor?.(flags) ?? program.gates ?? {};
  const withGates = Object.hasOwn(flags, "feature-gates") ? { ...flags, "feature-gates": settings } : flags;
  const warnings = invocation.warnings.filter((warning) => name === undefined || !warning.includes(`--${name} `));
  return { ...invocation, flags: withGates, given, gates: new FeatureGates(table, settings), warnings };
}

/** `loadAgentConfig()` of an agent under test. */
export function loadMutant(argv: readonly string[], baseline: readonly string[] = []): EffectiveConfig {
  const effective = loadAgentConfig(withoutWithheld(argv), {});
  if (current === undefined) return effective;
  const base = loadAgentConfig(baseline, {});
  const flag = withheldName("flag") as keyof typeof agentFlags | undefined;
  const row: Flag | undefined = flag === undefined ? undefined : agentFlags[flag];
  const flags = flag === undefined ? effective.flags : { ...effective.flags, [flag]: base.flags[flag] };
  const path = withheldName("field") ?? row?.config;
  const config = path === undefined ? effective.config : withValueOf(base.config, effective.config, path.split("."));
  const settings = withoutGate(flags["feature-gates"]);
  return {
    ...effective,
    config: config as EffectiveConfig["config"],
    flags: { ...flags, "feature-gates": settings },
    gates: new FeatureGates(agentGates, settings),
  };
}

function withheldName(kind: Mutant["kind"]): string | undefined {
  return current?.kind === kind ? current.name : undefined;
}

function withoutGate(settings: unknown): GateSettings {
  const all = Object.entries((settings ?? {}) as GateSettings);
  return Object.fromEntries(all.filter(([name]) => !isWithheldGate(name)));
}

function isWithheldGate(name: string): boolean {
  return name.replaceAll("Kubelet", "Svclet") === withheldName("gate");
}

/** `tree` with the value that `base` has at the path. */
function withValueOf(base: unknown, tree: unknown, [first = "", ...rest]: readonly string[]): unknown {
  const [from, to] = [base, tree].map((each) => (isPlainObject(each) ? each : {})) as [object, object];
  const value = (from as Readonly<Record<string, unknown>>)[first];
  const own = (to as Readonly<Record<string, unknown>>)[first];
  return { ...to, [first]: rest.length === 0 ? value : withValueOf(value, own, rest) };
}
