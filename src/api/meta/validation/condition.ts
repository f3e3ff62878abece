/** Rules for `meta/v1.Condition`, which newer kinds have in their status. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { Condition } from "../condition.ts";
import { qualifiedName } from "./names.ts";

const STATUSES = ["False", "True", "Unknown"];
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const REASON_MAX = 1024;
const MESSAGE_MAX = 32_768;
const REASON_MESSAGE =
  "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

export function validateConditions(conditions: readonly Condition[] | undefined, path: string): readonly FieldError[] {
  const types = new Set<string>();
  return validateEach(conditions ?? [], (condition, i) => {
    const at = index(path, i);
    const repeated = types.has(condition.type) ? [duplicateField(child(at, "type"), condition.type)] : [];
    types.add(condition.type);
    return [...repeated, ...validateCondition(condition, at)];
  });
}

function validateCondition(condition: Condition, path: string): readonly FieldError[] {
  const { type, status, observedGeneration = 0, lastTransitionTime, reason, message } = condition;
  const at = (name: string): string => child(path, name);
  return [
    ...qualifiedName(type).map((problem) => invalidField(at("type"), type, problem)),
    ...(STATUSES.includes(status) ? [] : [notSupported(at("status"), status, STATUSES)]),
    ...(observedGeneration < 0
      ? [invalidField(at("observedGeneration"), observedGeneration, "must be greater than or equal to zero")]
      : []),
    ...(lastTransitionTime ? [] : [requiredField(at("lastTransitionTime"), "must be set")]),
    ...validateReason(reason, at("reason")),
    ...(Buffer.byteLength(message) > MESSAGE_MAX ? [tooLong(at("message"), MESSAGE_MAX)] : []),
  ];
}

function validateReason(reason: string, field: string): readonly FieldError[] {
  if (reason === "") return [requiredField(field, "must be set")];
  return [
    ...(REASON.test(reason) ? [] : [invalidField(field, reason, REASON_MESSAGE)]),
    ...(Buffer.byteLength(reason) > REASON_MAX ? [tooLong(field, REASON_MAX)] : []),
  ];
}
