/** Rules for taints of devices and for tolerations of them. */
import { type FieldError, invalidField, notSupported, requiredField } from "../../schema/validation/field-error.ts";
import { labelValue, qualifiedName, validateName } from "../meta/validation/names.ts";
import type { DeviceTaint, DeviceToleration } from "./schemas.ts";

const EFFECTS = ["NoExecute", "NoSchedule"];
const OPERATORS = ["Equal", "Exists"];

export function validateTaint(taint: Partial<DeviceTaint>, path: string): readonly FieldError[] {
  const { key = "", value = "" } = taint;
  const given: string = taint.effect ?? "";
  return [
    ...validateName(`${path}.key`, key, qualifiedName),
    ...(value === "" ? [] : validateName(`${path}.value`, value, labelValue)),
    ...(given === "" ? [requiredField(`${path}.effect`)] : validateEffect(given, path)),
  ];
}

function validateEffect(effect: string, path: string): readonly FieldError[] {
  return EFFECTS.includes(effect) ? [] : [notSupported(`${path}.effect`, effect, EFFECTS)];
}

export function validateToleration(toleration: DeviceToleration, path: string): readonly FieldError[] {
  const { key = "", value = "" } = toleration;
  const operator: string = toleration.operator ?? "";
  const effect: string = toleration.effect ?? "";
  return [
    ...(key === "" ? [] : validateName(`${path}.key`, key, qualifiedName)),
    ...validateOperator(operator, value, path),
    ...(effect === "" ? [] : validateEffect(effect, path)),
  ];
}

function validateOperator(operator: string, value: string, path: string): readonly FieldError[] {
  switch (operator) {
    case "Exists":
      return value === "" ? [] : [invalidField(`${path}.value`, value, "must be empty for operator `Exists`")];
    case "Equal":
      return validateName(`${path}.value`, value, labelValue);
    case "":
      return [requiredField(`${path}.operator`)];
    default:
      return [notSupported(`${path}.operator`, operator, OPERATORS)];
  }
}

/** Sets the time of taints that have none. */
export function setTaintTime(taint: DeviceTaint, now: string): DeviceTaint {
  return taint.timeAdded === undefined ? { ...taint, timeAdded: now } : taint;
}
