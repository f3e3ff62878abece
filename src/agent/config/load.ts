/**
 * Loads the agent's configuration from its sources, each overriding the previous one: defaults, the file set with
 * `--config`, drop-ins in the order of their names, flags. Feature gates merge name by name.
 */

import { resolve } from "node:path";
import { FlagError, type ParsedFlags, ValueError } from "../../flags/flag.ts";
import { agentGates } from "../../flags/gate-tables/agent.ts";
import { allGates } from "../../flags/gate-tables/all.ts";
import { FeatureGates, gateProblems, gateWarnings } from "../../flags/gates.ts";
import { parseCommandLine } from "../../flags/parse.ts";
import { parseDuration } from "../../flags/types/duration.ts";
import type { GateSettings } from "../../flags/types/gate-settings.ts";
import { duration } from "../../schema/define.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { agentFlags } from "../flags.ts";
import { listDropIns } from "./drop-ins.ts";
import { type ConfigField, configFields, fromJson, getDefault, isEffective, toJson } from "./fields.ts";
import {
  type Branch,
  emptyBranch,
  findOrigin,
  formatPath,
  formatSource,
  listLeaves,
  mergeOrigins,
  type Source,
  toOrigins,
  toPlainValue,
  withOrigin,
} from "./origin.ts";
import { type ConfigFile, readConfigFile } from "./read.ts";
import type { DefaultedConfiguration } from "./schema.ts";
import { validateRules } from "./validate.ts";

export interface EffectiveConfig {
  /** Every field that has a value, defaults included. */
  readonly config: DefaultedConfiguration;
  /** Every flag, those with a field in the file at its effective value. */
  readonly flags: ParsedFlags<typeof agentFlags>;
  /** Names of the flags that were on the command line. */
  readonly given: ReadonlySet<string>;
  readonly gates: FeatureGates;
  /** The values of `config` with the source of each. */
  readonly origins: Branch;
  readonly warnings: readonly string[];
}

/** The environment variable that names the drop-in directory when `--config-dir` does not. */
export const DROP_IN_VARIABLE = "SVCLET_CONFIG_DROPIN_DIR_ALPHA";

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws `FlagError` with all problems of the command line and the files. */
export function loadAgentConfig(argv: readonly string[], env: Environment): EffectiveConfig {
  const line = parseCommandLine(agentFlags, argv);
  const files = readFiles(line.values.config, line.values["config-dir"] || (env[DROP_IN_VARIABLE] ?? ""));
  const problems = files.flatMap((file) => file.problems);
  if (problems.length > 0) throw new FlagError(problems);

  const withFile = line.values.config !== "";
  const set = applyFlags(files.reduce(applyFile, emptyBranch), line.values, line.given);
  const ungated = applyDerived(configFields.reduce((tree, field) => applyDefault(tree, field, withFile), set));
  const wrong = new Set<ConfigField>();
  const flags = resolveFlagValues(line.values, ungated, problems, wrong);
  const settings = flags["feature-gates"];
  const gates = new FeatureGates(agentGates, settings);
  const origins = sortFields(applyGatedDefaults(ungated, gates));
  problems.push(...validateGateSettings(origins, settings), ...validateFields(origins, withFile, gates, wrong));
  if (problems.length === 0) problems.push(...validateRules(flags, origins, gates.enabled("SvcletTracing")));
  if (problems.length > 0) throw new FlagError(problems);
  return {
    config: toPlainValue(origins) as DefaultedConfiguration,
    flags,
    given: line.given,
    gates,
    origins,
    warnings: [...line.warnings, ...gateWarnings(agentGates, settings)],
  };
}

function readFiles(config: string, directory: string): readonly ConfigFile[] {
  const main = config === "" ? [] : [readConfigFile(resolve(config), "file")];
  const dropIns = directory === "" ? [] : listDropIns(resolve(directory));
  return [...main, ...dropIns.map((file) => readConfigFile(file, "drop-in"))];
}

function applyFile(tree: Branch, file: ConfigFile): Branch {
  const kept = file.removed.reduce((rest, steps) => withOrigin(rest, steps, undefined), tree);
  return mergeOrigins(kept, file.origins) as Branch;
}

/** Flags on the command line replace fields of the files, maps as a whole; feature gates are merged. */
function applyFlags(tree: Branch, values: Readonly<Record<string, unknown>>, given: ReadonlySet<string>): Branch {
  return configFields.reduce((result, { steps, flag }) => {
    if (flag === undefined || !given.has(flag.name)) return result;
    const source: Source = { kind: "flag", flag: flag.name };
    const node = toOrigins(toJson(flag.row, values[flag.name]), () => source);
    if (flag.name !== "feature-gates") return withOrigin(result, steps, node);
    return withOrigin(result, steps, mergeOrigins(findOrigin(result, steps), node));
  }, tree);
}

const isDefault = (): Source => ({ kind: "default" });

/** Kubernetes does not distinguish zero values from absent fields that are not pointers: both get the default. */
function applyDefault(tree: Branch, target: ConfigField, withFile: boolean): Branch {
  const found = findOrigin(tree, target.steps);
  const fromFlag = found?.kind === "leaf" && found.source.kind === "flag";
  const isUnset = found?.kind === "leaf" && !fromFlag && target.field.presence === "optional" && isZero(found.value);
  if (found !== undefined && !isUnset) return tree;
  const value = getDefault(target, withFile);
  return isEmpty(value) ? tree : withOrigin(tree, target.steps, toOrigins(value, isDefault));
}

function isZero(value: unknown): boolean {
  return value === "" || value === 0 || value === "0s" || value === "0";
}

/** Empty strings, lists and maps are left out of the configuration. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === "") return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Defaults that depend on other fields. */
function applyDerived(tree: Branch): Branch {
  const leaf = (name: string) => {
    const node = findOrigin(tree, [name]);
    return node?.kind === "leaf" ? node : undefined;
  };
  let result = tree;
  if (Number(leaf("maxParallelImagePulls")?.value ?? 0) > 1 && leaf("serializeImagePulls")?.source.kind === "default") {
    result = withOrigin(result, ["serializeImagePulls"], toOrigins(false, isDefault));
  }
  const update = leaf("nodeStatusUpdateFrequency");
  if (update?.source.kind !== "default" && leaf("nodeStatusReportFrequency")?.source.kind === "default") {
    result = withOrigin(result, ["nodeStatusReportFrequency"], update);
  }
  if (leaf("mergeDefaultEvictionSettings")?.value === true) {
    const steps = ["evictionHard"];
    const defaults = toOrigins(agentFlags["eviction-hard"].default, isDefault);
    result = withOrigin(result, steps, mergeOrigins(defaults, findOrigin(result, steps) ?? emptyBranch));
  }
  return result;
}

/** Defaults that fields have while their gate is on. */
function applyGatedDefaults(tree: Branch, gates: FeatureGates): Branch {
  return gatedDefaults.reduce((result, { gate, steps, value }) => {
    if (!gates.enabled(gate) || findOrigin(result, steps) !== undefined) return result;
    return withOrigin(result, steps, toOrigins(value, isDefault));
  }, tree);
}

const gatedDefaults = [
  {
    gate: "SvcletEnsureSecretPulledImages",
    steps: ["imagePullCredentialsVerificationPolicy"],
    value: "NeverVerifyPreloadedImages",
  },
  { gate: "SvcletCrashLoopBackOffMax", steps: ["crashLoopBackOff", "maxContainerRestartPeriod"], value: "5m0s" },
] as const;

/** Sorts fields in the order of the schema. */
function sortFields(tree: Branch): Branch {
  return configFields.reduce((result, { steps }) => {
    const node = findOrigin(tree, steps);
    return node === undefined ? result : withOrigin(result, steps, node);
  }, emptyBranch);
}

/** Each flag's effective value; values in files are validated like those of flags. */
function resolveFlagValues(
  parsed: ParsedFlags<typeof agentFlags>,
  origins: Branch,
  problems: string[],
  wrong: Set<ConfigField>,
): ParsedFlags<typeof agentFlags> {
  const values: Record<string, unknown> = { ...parsed };
  for (const target of configFields) {
    const { steps, flag } = target;
    if (flag === undefined) continue;
    const node = findOrigin(origins, steps);
    try {
      values[flag.name] = node === undefined ? flag.row.default : fromJson(flag.row, toPlainValue(node));
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      wrong.add(target);
      problems.push(
        `${describeSource(node)}: field ${formatPath(steps)}: ${stringifyExact(node && toPlainValue(node))} ${error.message}`,
      );
    }
  }
  return values as ParsedFlags<typeof agentFlags>;
}

function validateGateSettings(origins: Branch, settings: GateSettings): string[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const node = findOrigin(origins, ["featureGates", name]);
    return gateProblems(agentGates, { [name]: value }, allGates).map(
      (problem) => `${describeSource(node)}: ${problem}`,
    );
  });
}

/** Refuses fields without effect, and fields whose gate is off, unless they have their default value. */
function validateFields(
  origins: Branch,
  withFile: boolean,
  gates: FeatureGates,
  wrong: ReadonlySet<ConfigField>,
): string[] {
  return configFields.flatMap((target) => {
    if (wrong.has(target)) return [];
    const { steps, flag, field } = target;
    const node = findOrigin(origins, steps);
    const leaf = node === undefined ? undefined : firstLeaf(node);
    if (leaf === undefined || leaf.source.kind === "default") return [];
    const normal = getDefault(target, withFile);
    const defaults = [normal, getDefault(target, false)];
    if (node !== undefined && defaults.some((value) => equalsAsJson(toPlainValue(node), value))) return [];
    const gate = flag?.row.gate ?? field.featureGate;
    const at = `${describeSource(node)}: field ${formatPath(steps)}`;
    if (!isEffective(target)) {
      const only = isEmpty(normal) ? "leave it out" : `only its default ${JSON.stringify(normal)} is accepted`;
      return [`${at}: this build does not support this field, ${only}`];
    }
    if (isNegativeDuration(target, node)) return [`${at}: must not be negative`];
    const choices = unknownChoice(target, node);
    if (choices !== undefined) return [`${at}: ${choices}`];
    return gate === undefined || gates.has(gate) ? [] : [`${at}: needs feature gate ${gate}`];
  });
}

/** Durations with a flag have the flag's bounds. */
function isNegativeDuration({ schema, flag }: ConfigField, node: ReturnType<typeof findOrigin>): boolean {
  if (flag !== undefined || schema !== duration || node === undefined) return false;
  return (parseDuration(String(toPlainValue(node))) ?? 0) < 0;
}

/** The error of a value that the schema does not list. Fields with a flag have the flag's choices. */
function unknownChoice({ schema, flag }: ConfigField, node: ReturnType<typeof findOrigin>): string | undefined {
  if (flag !== undefined || schema.type !== "string" || schema.values === undefined || node === undefined)
    return undefined;
  const value = toPlainValue(node);
  if (typeof value !== "string" || value === "" || schema.values.includes(value)) return undefined;
  return `${JSON.stringify(value)} must be one of ${schema.values.join(", ")}`;
}

function firstLeaf(node: ReturnType<typeof findOrigin> & object) {
  for (const [, leaf] of listLeaves(node)) return leaf;
  return undefined;
}

function describeSource(node: ReturnType<typeof findOrigin>): string {
  const leaf = node === undefined ? undefined : firstLeaf(node);
  return leaf === undefined ? "configuration" : formatSource(leaf.source);
}

function equalsAsJson(value: unknown, normal: unknown): boolean {
  return stringifyExact(value) === stringifyExact(normal);
}
