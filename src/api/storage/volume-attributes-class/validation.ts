import { type FieldError, forbiddenField, requiredField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { validateDriver, validateParameters } from "../storage-class/validation.ts";
import type { VolumeAttributesClass } from "./schema.ts";

export function validateAttributesClass(object: VolumeAttributesClass): readonly FieldError[] {
  const { driverName, parameters = {} } = object;
  return [
    ...validateDriver(driverName, "driverName"),
    ...validateParameters(parameters),
    ...(Object.keys(parameters).length === 0
      ? [requiredField("parameters", "must contain at least one key/value pair")]
      : []),
  ];
}

export function validateAttributesClassUpdate(
  next: VolumeAttributesClass,
  previous: VolumeAttributesClass,
): readonly FieldError[] {
  const forbid = (field: string): FieldError => forbiddenField(field, `updates to ${field} are forbidden.`);
  return [
    ...(next.driverName === previous.driverName ? [] : [forbid("driverName")]),
    ...(deepEqual(next.parameters ?? {}, previous.parameters ?? {}) ? [] : [forbid("parameters")]),
  ];
}
