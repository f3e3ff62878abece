/** Ratcheting validation of updates: unchanged parts of a custom resource can stay invalid. */

import { membersOf } from "../members.ts";
import type { Schema } from "../schema.ts";
import { deepEqual } from "../value/equal.ts";
import { index } from "../value/field-path.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { memberPath, ValidationReport } from "./check-rules.ts";
import { correlateItems, correlateMember } from "./correlate.ts";
import { findDuplicates } from "./duplicates.ts";
import type { FieldError } from "./field-error.ts";
import { rulesCheckOf, validate } from "./validate.ts";

/** As `validate`, without the errors of unchanged parts. Kubernetes ratchets only custom resources in this way. */
export function validateWithRatcheting(
  schema: Schema,
  value: unknown,
  old: unknown,
  field = "",
): readonly FieldError[] {
  const errors = validate(schema, value, field);
  if (errors.length === 0 || old === undefined || schema.unstructured !== true) return errors;
  const report = new ValidationReport(field);
  checkChanged(schema, value, old, "", report);
  const duplicates = findDuplicates(schema, value, field);
  if (duplicates.length > 0 && findDuplicates(schema, old, field).length === 0) report.add(...duplicates);
  return report.errors;
}

function checkChanged(schema: Schema, value: unknown, old: unknown, path: string, report: ValidationReport): void {
  if (old !== undefined && deepEqual(value, old)) return;
  rulesCheckOf(schema)?.(value, path, report);
  switch (schema.type) {
    case "object":
      if (!isPlainObject(value)) return;
      for (const { name, schema: member } of membersOf(schema)) {
        if (!Object.hasOwn(value, name)) continue;
        checkChanged(member, value[name], correlateMember(old, name), memberPath(path, name), report);
      }
      return;
    case "map":
      if (!isPlainObject(value)) return;
      for (const name of Object.keys(value)) {
        checkChanged(schema.values, value[name], correlateMember(old, name), memberPath(path, name), report);
      }
      return;
    case "list": {
      if (!Array.isArray(value)) return;
      const oldOf = correlateItems(schema, old);
      for (const [position, item] of value.entries()) {
        checkChanged(schema.items, item, oldOf(item), index(path, position), report);
      }
    }
  }
}
