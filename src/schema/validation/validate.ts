/**
 * Validates a value by its schema: value rules, enums, duplicate items of set and map lists. `decode` has checked types
 * already, except in custom resources. Validation across fields is part of each kind; CEL rules, which need the old
 * value, are evaluated elsewhere.
 */

import { membersOf } from "../members.ts";
import type { ListSchema, MapSchema, ObjectSchema, Schema, StringSchema } from "../schema.ts";
import { index, key } from "../value/field-path.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { type Check, compileRuleCheck, memberPath, ValidationReport } from "./check-rules.ts";
import { findDuplicates } from "./duplicates.ts";
import { type FieldError, notSupported } from "./field-error.ts";

/** Returns all errors, up to `errorsMax`. `field` is the path of the value, empty for a whole object. */
export function validate(schema: Schema, value: unknown, field = ""): readonly FieldError[] {
  const check = checkOf(schema);
  if (check === null) return [];
  const report = new ValidationReport(field);
  check(value, "", report);
  if (schema.unstructured === true) report.add(...findDuplicates(schema, value, field));
  return report.errors;
}

/** Null for schemas without rules. */
const checks = new WeakMap<Schema, Check | null>();

function checkOf(schema: Schema): Check | null {
  let check = checks.get(schema);
  if (check === undefined) {
    check = hasRules(schema, new Set()) ? compile(schema) : null;
    checks.set(schema, check);
  }
  return check;
}

function hasRules(schema: Schema, seen: Set<Schema>): boolean {
  if (schema.rules !== undefined || schema.unstructured === true) return true;
  if (seen.has(schema)) return false;
  seen.add(schema);
  switch (schema.type) {
    case "string":
      return hasEnumCheck(schema);
    case "object":
      return membersOf(schema).some((member) => hasRules(member.schema, seen));
    case "list":
      return hasRules(schema.items, seen);
    case "map":
      return hasRules(schema.values, seen);
    default:
      return false;
  }
}

function hasEnumCheck(schema: StringSchema): boolean {
  return schema.values !== undefined && schema.validatedByKind !== true;
}

const rulesChecks = new WeakMap<Schema, Check | null>();

/** The check of the schema's own rules, without those of its members and items. */
export function rulesCheckOf(schema: Schema): Check | undefined {
  let check = rulesChecks.get(schema);
  if (check === undefined) {
    check = (schema.rules === undefined ? null : compileRuleCheck(schema.rules, schema.nullable === true)) ?? null;
    rulesChecks.set(schema, check);
  }
  return check ?? undefined;
}

function compile(schema: Schema): Check | null {
  const own = rulesCheckOf(schema);
  const parts = partsCheck(schema);
  if (own === undefined) return parts;
  if (parts === null) return own;
  return (value, path, report) => {
    own(value, path, report);
    parts(value, path, report);
  };
}

function partsCheck(schema: Schema): Check | null {
  switch (schema.type) {
    case "string":
      return hasEnumCheck(schema) ? enumCheck(schema.values ?? []) : null;
    case "object":
      return objectCheck(schema);
    case "list":
      return listCheck(schema);
    case "map":
      return mapCheck(schema);
    default:
      return null;
  }
}

function enumCheck(values: readonly string[]): Check {
  const allowed = new Set(values);
  return (value, path, report) => {
    // The kind's validation decides whether the field can be empty.
    if (typeof value === "string" && value !== "" && !allowed.has(value)) {
      report.add(notSupported(report.field(path), value, [...allowed].sort()));
    }
  };
}

function objectCheck(schema: ObjectSchema): Check {
  const slots = membersOf(schema).filter((member) => hasRules(member.schema, new Set()));
  return (value, path, report) => {
    if (!isPlainObject(value)) return;
    for (const { name, schema: target } of slots) {
      if (!Object.hasOwn(value, name) || value[name] === undefined) continue;
      checkOf(target)?.(value[name], memberPath(path, name), report);
    }
  };
}

function listCheck(schema: ListSchema): Check {
  return (value, path, report) => {
    if (!Array.isArray(value)) return;
    const items = checkOf(schema.items);
    if (items === null) return;
    for (let position = 0; position < value.length && !report.isFull; position++) {
      items(value[position], index(path, position), report);
    }
  };
}

function mapCheck(schema: MapSchema): Check {
  // Kubernetes' validator of custom resources puts a dot before the name of any value.
  const pathOf = schema.unstructured === true ? (path: string, name: string) => `${path}.${name}` : key;
  return (value, path, report) => {
    if (!isPlainObject(value)) return;
    const values = checkOf(schema.values);
    if (values === null) return;
    for (const name of Object.keys(value)) {
      if (report.isFull) return;
      values(value[name], pathOf(path, name), report);
    }
  };
}
