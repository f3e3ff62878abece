/** Rules for pod failure policies and success policies. */
import {
  duplicateField,
  errorsMax,
  type FieldError,
  invalidCombination,
  invalidField,
  invalidUnquoted,
  notSupported,
  requiredField,
  tooLong,
  tooMany,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goPointer } from "../../../schema/validation/go-syntax.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { qualifiedName } from "../../meta/validation/names.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import { countIndexes, IndexesError, parseIndexes } from "./indexes.ts";
import {
  type JobSpec,
  type PodFailurePolicyOnExitCodesRequirement,
  type PodFailurePolicyOnPodConditionsPattern,
  type PodFailurePolicyRule,
  type SuccessPolicyRule,
  successPolicy,
} from "./schema.ts";

const RULES_MAX = 20;
const PATTERNS_MAX = 20;
const EXIT_CODES_MAX = 255;
const INDEXES_MAX_BYTES = 65_536;
const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS = ["In", "NotIn"];
const STATUSES = ["False", "True", "Unknown"];

export function validatePodFailurePolicy(spec: Partial<JobSpec>, path: string): readonly FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const at = child(path, "rules");
  const { containers = [], initContainers = [] } = spec.template?.spec ?? {};
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  return [
    ...(rules.length > RULES_MAX ? [tooMany(at, rules.length, RULES_MAX)] : []),
    ...validateEach(rules, (rule, i) => validateFailureRule(rule, index(at, i), spec, names)),
  ];
}

function validateFailureRule(
  rule: PodFailurePolicyRule,
  path: string,
  spec: Partial<JobSpec>,
  containers: ReadonlySet<string>,
): readonly FieldError[] {
  const { onExitCodes, onPodConditions = [] } = rule;
  const both = onExitCodes !== undefined && onPodConditions.length > 0;
  const none = onExitCodes === undefined && onPodConditions.length === 0;
  return [
    ...(rule.action === "FailIndex"
      ? validateFailIndex(spec, child(path, "action"))
      : validateChoice(rule.action, ACTIONS, child(path, "action"))),
    ...(onExitCodes === undefined ? [] : validateExitCodes(onExitCodes, child(path, "onExitCodes"), containers)),
    ...validatePatterns(onPodConditions, child(path, "onPodConditions")),
    ...(both ? [invalidCombination(path, "specifying both OnExitCodes and OnPodConditions is not supported")] : []),
    ...(none ? [invalidCombination(path, "specifying one of OnExitCodes and OnPodConditions is required")] : []),
  ];
}

function validateFailIndex(spec: Partial<JobSpec>, field: string): readonly FieldError[] {
  if (spec.backoffLimitPerIndex !== undefined) return [];
  return [invalidField(field, "FailIndex", "requires the backoffLimitPerIndex to be set")];
}

function validateChoice(value: string, choices: readonly string[], field: string): readonly FieldError[] {
  if (value === "") {
    return [requiredField(field, `valid values: [${choices.map((choice) => goQuote(choice)).join(" ")}]`)];
  }
  return choices.includes(value) ? [] : [notSupported(field, value, choices)];
}

function validateExitCodes(
  { operator, containerName, values }: PodFailurePolicyOnExitCodesRequirement,
  path: string,
  containers: ReadonlySet<string>,
): readonly FieldError[] {
  const errors = [...validateChoice(operator, OPERATORS, child(path, "operator"))];
  if (containerName !== undefined && !containers.has(containerName)) {
    const detail = "must be one of the container or initContainer names in the pod template";
    errors.push(invalidField(child(path, "containerName"), containerName, detail));
  }
  const at = child(path, "values");
  if (values.length === 0) errors.push(invalidUnquoted(at, "[]int32(nil)", "at least one value is required"));
  if (values.length > EXIT_CODES_MAX) errors.push(tooMany(at, values.length, EXIT_CODES_MAX));
  const repeated = repeatedIndexes(values);
  for (const [i, code] of values.entries()) {
    if (errors.length >= errorsMax) break;
    if (operator === "In" && code === 0) {
      errors.push(invalidField(index(at, i), code, "must not be 0 for the In operator"));
    }
    if (repeated.has(i)) errors.push(duplicateField(index(at, i), code));
  }
  const ordered = values.every((code, i) => i === 0 || values[i - 1]! <= code);
  if (!ordered) errors.push(invalidUnquoted(at, `[]int32{${values.join(", ")}}`, "must be ordered"));
  return errors;
}

function validatePatterns(
  patterns: readonly PodFailurePolicyOnPodConditionsPattern[],
  path: string,
): readonly FieldError[] {
  return [
    ...(patterns.length > PATTERNS_MAX ? [tooMany(path, patterns.length, PATTERNS_MAX)] : []),
    ...validateEach(patterns, ({ type, status }, i) => {
      const at = index(path, i);
      return [
        ...qualifiedName(type).map((problem) => invalidField(child(at, "type"), type, problem)),
        ...validateChoice(status, STATUSES, child(at, "status")),
      ];
    }),
  ];
}

/** A pod failure policy requires podReplacementPolicy Failed. */
export function validatePodReplacementPolicy(spec: Partial<JobSpec>, field: string): readonly FieldError[] {
  const policy = spec.podReplacementPolicy;
  const choices = spec.podFailurePolicy === undefined ? ["Failed", "TerminatingOrFailed"] : ["Failed"];
  return policy === undefined || choices.includes(policy) ? [] : [notSupported(field, policy, choices)];
}

export function validateSuccessPolicy(spec: Partial<JobSpec>, path: string): readonly FieldError[] {
  if (spec.successPolicy === undefined) return [];
  if (spec.completionMode !== "Indexed") {
    return [invalidField(path, goPointer(successPolicy, spec.successPolicy), "requires indexed completion mode")];
  }
  const { rules } = spec.successPolicy;
  const at = child(path, "rules");
  const none = "at least one rules must be specified when the successPolicy is specified";
  return [
    ...(rules.length === 0 ? [requiredField(at, none)] : []),
    ...(rules.length > RULES_MAX ? [tooMany(at, rules.length, RULES_MAX)] : []),
    ...validateEach(rules, (rule, i) => validateSuccessRule(rule, index(at, i), spec.completions ?? 0)),
  ];
}

function validateSuccessRule(
  { succeededCount, succeededIndexes }: SuccessPolicyRule,
  path: string,
  completions: number,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (succeededCount === undefined && succeededIndexes === undefined) {
    errors.push(requiredField(path, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  let indexes = 0;
  if (succeededIndexes !== undefined) {
    const at = child(path, "succeededIndexes");
    if (Buffer.byteLength(succeededIndexes) > INDEXES_MAX_BYTES) errors.push(tooLong(at, INDEXES_MAX_BYTES));
    const problem = indexesProblem(succeededIndexes, completions);
    if (problem === undefined) indexes = countIndexes(parseIndexes(succeededIndexes, completions));
    else errors.push(invalidField(at, succeededIndexes, `error parsing succeededIndexes: ${problem}`));
  }
  if (succeededCount === undefined) return errors;
  const at = child(path, "succeededCount");
  const atMost = (most: number, what: string): void => {
    if (succeededCount <= most) return;
    errors.push(invalidField(at, succeededCount, `must be less than or equal to ${most} (the number of ${what})`));
  };
  errors.push(...validateNonNegative(succeededCount, at));
  atMost(completions, "specified completions");
  if (succeededIndexes !== undefined) atMost(indexes, "indexes in the specified succeededIndexes field");
  return errors;
}

/** The error of a set of indexes; undefined for a valid one. */
export function indexesProblem(text: string, completions: number): string | undefined {
  try {
    parseIndexes(text, completions);
    return undefined;
  } catch (error) {
    if (error instanceof IndexesError) return error.message;
    throw error;
  }
}
