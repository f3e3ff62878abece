/** Evaluates the CEL rules of a custom resource, for the new and the previous object. */
import { toCelValue } from "../../../cel/adapter/json-value.ts";
import type { Variables } from "../../../cel/cel.ts";
import { PER_RESOURCE_COST_MAX } from "../../../cel/cost/limits.ts";
import { Optional, type Value } from "../../../cel/values/value.ts";
import { membersOf } from "../../../schema/members.ts";
import type { Schema } from "../../../schema/schema.ts";
import { correlateItems, correlateMember } from "../../../schema/validation/correlate.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  renderFieldError,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import type { ValidationRule } from "../../../schema/validation/rules.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { type CompiledRule, compileRules } from "./rules.ts";

export interface RuleFindings {
  readonly errors: readonly FieldError[];
  /** Errors of unchanged values, which the previous object has as well: `spec.size: Invalid value: "integer": …`. */
  readonly warnings: readonly string[];
}

export interface EvaluateOptions {
  /** The path of the value. */
  readonly field?: string;
  /** The previous value; undefined for a new one. */
  readonly old?: unknown;
  /** The value is a whole resource. */
  readonly resourceRoot?: boolean;
  /** Ratcheting: unchanged values may keep their errors. */
  readonly ratchet?: boolean;
  readonly observer?: RuleObserver | undefined;
}

/** Measures the work on rules. */
export interface RuleObserver {
  measureCompilation<T>(compile: () => T): T;
  measureEvaluation<T>(evaluation: Steps<T>): Steps<T>;
}

const UNOBSERVED: RuleObserver = {
  measureCompilation: (compile) => compile(),
  measureEvaluation: (evaluation) => evaluation,
};

/** Yields between rules, which can take a second for one object. */
export function* evaluateRules(schema: Schema, value: unknown, options: EvaluateOptions = {}): Steps<RuleFindings> {
  const { old, field = "", resourceRoot = false, ratchet = false, observer = UNOBSERVED } = options;
  const run = new RuleEvaluation(ratchet, observer);
  yield* observer.measureEvaluation(run.visit({ schema, value, old, field }, resourceRoot));
  return run;
}

/** A few milliseconds. */
const STEP_COST = 50_000;

interface RuleSubject {
  readonly schema: Schema;
  readonly value: unknown;
  readonly old: unknown;
  readonly field: string;
}

class RuleEvaluation implements RuleFindings {
  readonly errors: FieldError[] = [];
  readonly warnings: string[] = [];
  readonly #ratchet: boolean;
  readonly #observer: RuleObserver;
  #budget = PER_RESOURCE_COST_MAX;
  /** The budget at which the present step ends. */
  #stepEnd = PER_RESOURCE_COST_MAX - STEP_COST;

  constructor(ratchet: boolean, observer: RuleObserver) {
    this.#ratchet = ratchet;
    this.#observer = observer;
  }

  *visit(part: RuleSubject, resourceRoot = false): Steps<void> {
    const { schema, value } = part;
    if (value === null || value === undefined || this.#budget < 0 || !hasRules(schema)) return;
    for (const rule of compiledOf(schema, resourceRoot, this.#observer)) {
      this.#apply(rule, part);
      if (this.#budget < 0) return;
      if (this.#budget > this.#stepEnd) continue;
      this.#stepEnd = this.#budget - STEP_COST;
      yield;
    }
    yield* this.#visitParts(part);
  }

  *#visitParts({ schema, value, old, field }: RuleSubject): Steps<void> {
    if (schema.type === "object" && isPlainObject(value)) {
      for (const { name, schema: member } of membersOf(schema)) {
        if (!Object.hasOwn(value, name)) continue;
        yield* this.visit({
          schema: member,
          value: value[name],
          old: correlateMember(old, name),
          field: child(field, name),
        });
      }
    } else if (schema.type === "map" && isPlainObject(value)) {
      for (const name of Object.keys(value)) {
        const part = { value: value[name], old: correlateMember(old, name), field: key(field, name) };
        yield* this.visit({ schema: schema.values, ...part });
      }
    } else if (schema.type === "list" && Array.isArray(value)) {
      const oldOf = correlateItems(schema, old);
      for (const [i, item] of value.entries()) {
        yield* this.visit({ schema: schema.items, value: item, old: oldOf(item), field: index(field, i) });
      }
    }
  }

  #apply(compiled: CompiledRule, part: RuleSubject): void {
    const { rule, program, usesOldSelf } = compiled;
    const wrong = (detail: string): void =>
      void this.errors.push(invalidField(fieldPathOf(part), typeName(part.schema), detail));
    if (compiled.error !== undefined) wrong(`rule compile error: ${compiled.error}`);
    if (program === undefined) return;
    // Transition rules need a previous value, unless they have optionalOldSelf.
    if (usesOldSelf && isAbsent(part.old) && rule.optionalOldSelf !== true) return;
    const variables = variablesOf(compiled, part);
    const { value, error, cost } = program.evaluate(variables);
    if (!this.#spend(cost, error?.costExceeded === true)) {
      const end = "no further validation rules will be run";
      if (error?.costExceeded === true) {
        wrong(`'${error.message}': ${end} due to call cost exceeds limit for rule: ${ruleText(rule)}`);
      } else wrong(`validation failed due to running out of cost budget, ${end}`);
      return;
    }
    if (error !== undefined) wrong(failureText(error.message, rule));
    else if (value !== true) this.#report(compiled, part, this.#messageOf(compiled, variables));
  }

  /** Returns false when the budget is exceeded. */
  #spend(cost: number, exceeded: boolean): boolean {
    this.#budget = exceeded || cost > this.#budget ? -1 : this.#budget - cost;
    return this.#budget >= 0;
  }

  #messageOf({ rule, message }: CompiledRule, variables: Variables): string {
    const outcome = message?.evaluate(variables, { budget: Math.min(this.#budget, PER_RESOURCE_COST_MAX) });
    if (outcome === undefined) return plainMessage(rule);
    this.#spend(outcome.cost, outcome.error?.costExceeded === true);
    const text = typeof outcome.value === "string" ? outcome.value.trim() : "";
    const fit = text !== "" && text.length <= MESSAGE_MAX && !/[\r\n]/.test(text);
    return fit ? text : plainMessage(rule);
  }

  #report({ rule, usesOldSelf }: CompiledRule, part: RuleSubject, detail: string): void {
    const error = errorFor(rule, fieldPathOf(part, rule.fieldPath ?? ""), typeName(part.schema), detail);
    const untouched = !usesOldSelf && this.#ratchet && !isAbsent(part.old) && deepEqual(part.old, part.value);
    if (untouched) this.warnings.push(`${error.field}: ${renderFieldError(error)}`);
    else this.errors.push(error);
  }
}

/** Longer messages are replaced by the rule's own. */
const MESSAGE_MAX = 5120;

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function variablesOf({ rule }: CompiledRule, { schema, value, old }: RuleSubject): Variables {
  const oldSelf = (): Value => toCelValue(schema, old);
  if (rule.optionalOldSelf !== true) return { self: () => toCelValue(schema, value), oldSelf };
  return {
    self: () => toCelValue(schema, value),
    oldSelf: () => (isAbsent(old) ? Optional.none : Optional.of(oldSelf())),
  };
}

/** The path of the value, or of a field inside it. Kubernetes prints `<nil>` for the root. */
function fieldPathOf({ field }: RuleSubject, inside = ""): string {
  // Keys in brackets are printed without quotes, and without a dot before them.
  const below = inside.replace(/\['((?:[^'\\]|\\.)*)'\]/g, (_, name: string) => `[${name.replace(/\\(.)/g, "$1")}]`);
  if (below === "") return field === "" ? "<nil>" : field;
  return below.startsWith("[") ? `${field}${below}` : child(field, below.replace(/^\./, ""));
}

function typeName(schema: Schema): string {
  return schema.rules?.types?.length === 1 ? (schema.rules.types[0] ?? "") : "";
}

function errorFor(rule: ValidationRule, field: string, badValue: string, detail: string): FieldError {
  switch (rule.reason) {
    case "FieldValueForbidden":
      return forbiddenField(field, detail);
    case "FieldValueRequired":
      return requiredField(field, detail);
    case "FieldValueDuplicate":
      return duplicateField(field, badValue);
    default:
      return invalidField(field, badValue, detail);
  }
}

function ruleText(rule: ValidationRule): string {
  return (rule.message || rule.rule).trim();
}

function plainMessage(rule: ValidationRule): string {
  return rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`;
}

function failureText(message: string, rule: ValidationRule): string {
  if (!message.startsWith("no such overload")) return `${message} evaluating rule: ${ruleText(rule)}`;
  const why = "call arguments did not match a supported operator, function or macro signature for rule";
  return `'${message}': ${why}: ${ruleText(rule)}`;
}

const compiledRules = new WeakMap<Schema, readonly CompiledRule[]>();

function compiledOf(schema: Schema, resourceRoot: boolean, observer: RuleObserver): readonly CompiledRule[] {
  if (schema.rules?.validations === undefined) return NO_RULES;
  let rules = compiledRules.get(schema);
  if (rules === undefined) {
    rules = observer.measureCompilation(() => compileRules(schema, { resourceRoot })) ?? NO_RULES;
    compiledRules.set(schema, rules);
  }
  return rules;
}

const NO_RULES: readonly CompiledRule[] = [];

const ruled = new WeakMap<Schema, boolean>();

/** Whether the schema or a nested one has rules. Schemas of custom resources are not recursive. */
export function hasRules(schema: Schema): boolean {
  let has = ruled.get(schema);
  if (has === undefined) {
    has = schema.unstructured === true && (schema.rules?.validations !== undefined || childrenHaveRules(schema));
    ruled.set(schema, has);
  }
  return has;
}

function childrenHaveRules(schema: Schema): boolean {
  switch (schema.type) {
    case "object":
      return membersOf(schema).some((member) => hasRules(member.schema));
    case "map":
      return hasRules(schema.values);
    case "list":
      return hasRules(schema.items);
    default:
      return false;
  }
}
