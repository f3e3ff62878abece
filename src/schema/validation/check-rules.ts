/**
 * Compiles `Rules` to checks with the messages of Kubernetes' OpenAPI validator: `spec.size in body should be less than
 * or equal to 10`.
 */

import { canonicalJson } from "../json/canonical-json.ts";
import { stringifyExact } from "../json/exact-numbers.ts";
import { goQuote } from "../value/go-quote.ts";
import { isPlainObject } from "../value/plain-object.ts";
import {
  errorsMax,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
  tooMany,
  unstructured,
} from "./field-error.ts";
import { formatOf } from "./formats.ts";
import { compilePattern } from "./pattern.ts";
import type { JsonType, Rules } from "./rules.ts";

/** The errors found so far. */
export class ValidationReport {
  readonly errors: FieldError[] = [];
  /** The path of the checked value. */
  readonly base: string;
  /** The number of passed checks: when all alternatives fail, the one with the most passed checks is reported. */
  passed = 0;

  constructor(base = "") {
    this.base = base;
  }

  /** The full path of a field; `path` is relative to the checked value. The root is `<nil>`, as in Go. */
  field(path: string): string {
    if (path === "") return this.base === "" ? "<nil>" : this.base;
    // The path of a value of a map begins with a dot. That of an item gets one too, as in Kubernetes.
    const below = path.startsWith(".") ? path.slice(1) : path;
    return this.base === "" ? below : `${this.base}.${below}`;
  }

  add(...errors: readonly FieldError[]): void {
    for (const error of errors) if (!this.isFull) this.errors.push(error);
  }

  /** No further errors are kept, so checks of further values have no effect. */
  get isFull(): boolean {
    return this.errors.length >= errorsMax;
  }
}

export type Check = (value: unknown, path: string, report: ValidationReport) => void;

/** Undefined when the rules check nothing. */
export function compileRuleCheck(rules: Rules, nullable = false): Check | undefined {
  const checks = [
    typeCheck(rules),
    ...junctorChecks(rules),
    stringCheck(rules),
    numberCheck(rules),
    arrayCheck(rules),
    enumCheck(rules),
    objectCheck(rules),
    memberCheck(rules),
  ].filter((check) => check !== undefined);
  if (checks.length === 0) return undefined;
  const ofNull = [nullable ? undefined : typeCheck(rules), enumCheck(rules)].filter((check) => check !== undefined);
  return (value, path, report) => {
    for (const check of value === null ? ofNull : checks) {
      const before = report.errors.length;
      check(value, path, report);
      if (report.errors.length === before) report.passed++;
    }
  };
}

function inBody(path: string, sentence: string): string {
  return `${path} in body ${sentence}`;
}

export function jsonTypeOf(value: unknown): JsonType | "null" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  switch (typeof value) {
    case "string":
    case "boolean":
      return typeof value as JsonType;
    case "number":
      return Number.isInteger(value) ? "integer" : "number";
    case "bigint":
      return "integer";
    default:
      return "object";
  }
}

function typeCheck({ types }: Rules): Check | undefined {
  if (types === undefined || types.length === 0) return undefined;
  const allowed = new Set<string>(types);
  if (allowed.has("number")) allowed.add("integer");
  return (value, path, report) => {
    const found = jsonTypeOf(value);
    if (allowed.has(found)) return;
    const detail = inBody(path, `must be of type ${types.join(",")}: "${found}"`);
    report.add({ type: "FieldValueTypeInvalid", field: report.field(path), badValue: found, detail });
  };
}

function junctorChecks(rules: Rules): readonly (Check | undefined)[] {
  return [anyOfCheck(rules.anyOf), oneOfCheck(rules.oneOf), allOfCheck(rules.allOf), notCheck(rules.not)];
}

const alwaysValid: Check = () => undefined;

interface Attempt {
  readonly valid: number;
  /** The errors of the alternative with the most passed checks. */
  readonly closest: readonly FieldError[];
}

function tryAlternatives(checks: readonly Check[], value: unknown, path: string, report: ValidationReport): Attempt {
  let valid = 0;
  let best: ValidationReport | undefined;
  for (const check of checks) {
    const trial = new ValidationReport(report.base);
    check(value, path, trial);
    if (trial.errors.length === 0) valid++;
    else if (best === undefined || trial.passed > best.passed) best = trial;
  }
  return { valid, closest: best?.errors ?? [] };
}

function anyOfCheck(anyOf: readonly Rules[] | undefined): Check | undefined {
  if (anyOf === undefined || anyOf.length === 0) return undefined;
  const checks = anyOf.map((rules) => compileRuleCheck(rules) ?? alwaysValid);
  return (value, path, report) => {
    const { valid, closest } = tryAlternatives(checks, value, path, report);
    if (valid === 0) report.add(junctorError(path, report, "must validate at least one schema (anyOf)"), ...closest);
  };
}

function oneOfCheck(oneOf: readonly Rules[] | undefined): Check | undefined {
  if (oneOf === undefined || oneOf.length === 0) return undefined;
  const checks = oneOf.map((rules) => compileRuleCheck(rules) ?? alwaysValid);
  return (value, path, report) => {
    const { valid, closest } = tryAlternatives(checks, value, path, report);
    if (valid === 1) return;
    const found = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
    const why = junctorError(path, report, `must validate one and only one schema (oneOf). ${found}`);
    report.add(why, ...(valid === 0 ? closest : []));
  };
}

function allOfCheck(allOf: readonly Rules[] | undefined): Check | undefined {
  if (allOf === undefined || allOf.length === 0) return undefined;
  const checks = allOf.map((rules) => compileRuleCheck(rules) ?? alwaysValid);
  return (value, path, report) => {
    const trials = checks.map((check) => {
      const trial = new ValidationReport(report.base);
      check(value, path, trial);
      return trial;
    });
    const failed = trials.filter((trial) => trial.errors.length > 0);
    if (failed.length === 0) return;
    for (const trial of failed) report.add(...trial.errors);
    const none = failed.length === trials.length ? ". None validated" : "";
    report.add(junctorError(path, report, `must validate all the schemas (allOf)${none}`));
  };
}

function notCheck(not: Rules | undefined): Check | undefined {
  if (not === undefined) return undefined;
  const check = compileRuleCheck(not) ?? alwaysValid;
  return (value, path, report) => {
    const trial = new ValidationReport(report.base);
    check(value, path, trial);
    if (trial.errors.length === 0) report.add(junctorError(path, report, "must not validate the schema (not)"));
  };
}

/** The error of a junctor, whose field is the whole checked value. */
function junctorError(path: string, report: ValidationReport, sentence: string): FieldError {
  return invalidField(report.field(""), "", `${goQuote(path)} ${sentence}`);
}

function stringCheck({ minLength, maxLength, pattern, format }: Rules): Check | undefined {
  const expression = pattern === undefined || pattern === "" ? undefined : compilePattern(pattern);
  const hasFormat = format === undefined ? undefined : formatOf(format);
  if (minLength === undefined && maxLength === undefined && expression === undefined && hasFormat === undefined) {
    return undefined;
  }
  return (value, path, report) => {
    if (typeof value !== "string") return;
    const field = report.field(path);
    if (maxLength !== undefined && isLonger(value, maxLength)) report.add(tooLong(field, maxLength));
    else if (minLength !== undefined && !isLonger(value, minLength - 1)) {
      report.add(invalidField(field, value, inBody(path, `should be at least ${minLength} chars long`)));
    } else if (expression !== undefined && !expression.test(value)) {
      report.add(invalidField(field, value, inBody(path, `should match '${pattern}'`)));
    }
    if (hasFormat !== undefined && !hasFormat(value)) {
      const detail = inBody(path, `must be of type ${format}: ${stringifyExact(value)}`);
      report.add({ type: "FieldValueTypeInvalid", field, badValue: value, detail });
    }
  };
}

/** Whether the text has more Unicode characters than this; its UTF-16 length decides most cases. */
function isLonger(text: string, characters: number): boolean {
  if (text.length <= characters) return false;
  if (text.length > characters * 2) return true;
  return [...text].length > characters;
}

function numberCheck(rules: Rules): Check | undefined {
  const { minimum, maximum, multipleOf } = rules;
  if (minimum === undefined && maximum === undefined && multipleOf === undefined) return undefined;
  return (found, path, report) => {
    if (typeof found !== "number" && typeof found !== "bigint") return;
    const value = Number(found);
    const wrong = (detail: string): void => report.add(invalidField(report.field(path), found, detail));
    if (multipleOf !== undefined && multipleOf <= 0) {
      wrong(`factor MultipleOf declared for ${path} must be positive: ${multipleOf}`);
    } else if (multipleOf !== undefined && !isInteger(value / multipleOf)) {
      wrong(inBody(path, `should be a multiple of ${multipleOf}`));
    }
    if (minimum !== undefined && (rules.exclusiveMinimum === true ? value <= minimum : value < minimum)) {
      wrong(inBody(path, `should be greater than ${rules.exclusiveMinimum === true ? "" : "or equal to "}${minimum}`));
    }
    if (maximum !== undefined && (rules.exclusiveMaximum === true ? value >= maximum : value > maximum)) {
      wrong(inBody(path, `should be less than ${rules.exclusiveMaximum === true ? "" : "or equal to "}${maximum}`));
    }
  };
}

/** Whether the quotient is an integer, with a tolerance since decimal fractions are inexact: 0.3 / 0.1. */
function isInteger(quotient: number): boolean {
  const nearest = Math.round(quotient);
  return quotient === nearest || Math.abs(quotient - nearest) / (Math.abs(quotient) + Math.abs(nearest)) < 1e-9;
}

function arrayCheck({ minItems, maxItems, uniqueItems, items }: Rules): Check | undefined {
  const each = items === undefined ? undefined : compileRuleCheck(items);
  if (minItems === undefined && maxItems === undefined && uniqueItems !== true && each === undefined) return undefined;
  return (value, path, report) => {
    if (!Array.isArray(value)) return;
    if (each !== undefined) {
      for (const [position, item] of value.entries()) {
        each(item, `${path}[${position}]`, report);
        if (report.isFull) break;
      }
    }
    const field = report.field(path);
    if (minItems !== undefined && value.length < minItems) {
      report.add(invalidField(field, value.length, inBody(path, `should have at least ${minItems} items`)));
    }
    if (maxItems !== undefined && value.length > maxItems) report.add(tooMany(field, value.length, maxItems));
    if (uniqueItems === true && new Set(value.map(canonicalJson)).size < value.length) {
      report.add(invalidField(field, value, inBody(path, "shouldn't contain duplicates")));
    }
  };
}

function enumCheck({ enum: values }: Rules): Check | undefined {
  if (values === undefined || values.length === 0) return undefined;
  const allowed = new Set(values.map(canonicalJson));
  let texts: readonly string[] | undefined;
  return (value, path, report) => {
    if (allowed.has(canonicalJson(value))) return;
    texts ??= values.map((each) => (typeof each === "string" ? each : stringifyExact(each)));
    report.add(notSupported(report.field(path), unstructured(value), texts));
  };
}

function objectCheck(rules: Rules): Check | undefined {
  const { minProperties, maxProperties, closed } = rules;
  if (minProperties === undefined && maxProperties === undefined && closed !== true) return undefined;
  return (value, path, report) => {
    if (!isPlainObject(value)) return;
    const size = Object.keys(value).length;
    const field = report.field(path);
    if (minProperties !== undefined && size < minProperties) {
      report.add(invalidField(field, size, inBody(path, `should have at least ${minProperties} properties`)));
    } else if (maxProperties !== undefined && size > maxProperties) report.add(tooMany(field, size, maxProperties));
    if (closed !== true) return;
    for (const name of Object.keys(value).slice(0, errorsMax)) {
      report.add(invalidField(field, name, `${path}.${name} in body is a forbidden property`));
    }
  };
}

/** Checks required members, and the rules of members. */
function memberCheck({ required = [], properties = {} }: Rules): Check | undefined {
  const members = Object.entries(properties).flatMap(([name, rules]) => {
    const check = compileRuleCheck(rules);
    return check === undefined ? [] : [[name, check] as const];
  });
  if (required.length === 0 && members.length === 0) return undefined;
  return (value, path, report) => {
    if (!isPlainObject(value)) return;
    for (const [name, check] of members) {
      if (Object.hasOwn(value, name)) check(value[name], memberPath(path, name), report);
    }
    for (const name of required) {
      if (!Object.hasOwn(value, name)) report.add(requiredField(report.field(memberPath(path, name))));
    }
  };
}

export function memberPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
