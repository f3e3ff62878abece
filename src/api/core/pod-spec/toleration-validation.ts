/** Rules for tolerations of node taints. */
import { type FieldError, invalidField, notSupported, validateEach } from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { labelValue, qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { Toleration } from "./affinity.ts";

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function validateTolerations(tolerations: readonly Toleration[], path: string): readonly FieldError[] {
  return validateEach(tolerations, (toleration, i) => validateToleration(toleration, index(path, i)));
}

export function validateToleration(toleration: Toleration, path: string): readonly FieldError[] {
  const { key = "", effect = "", tolerationSeconds } = toleration;
  const operator: string = toleration.operator ?? "";
  const errors: FieldError[] = [];
  if (key !== "") errors.push(...validateName(child(path, "key"), key, qualifiedName));
  else if (operator !== "Exists") {
    const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalidField(child(path, "operator"), operator, detail));
  }
  if (tolerationSeconds !== undefined && effect !== "NoExecute") {
    const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    errors.push(invalidField(child(path, "effect"), effect, detail));
  }
  errors.push(...validateOperator(toleration, operator, child(path, "operator")));
  if (effect !== "" && !EFFECTS.includes(effect)) {
    errors.push(notSupported(child(path, "effect"), effect, EFFECTS));
  }
  return errors;
}

/** An absent operator is `Equal`. Errors of the value have the operator's path, as in Kubernetes. */
function validateOperator(toleration: Toleration, operator: string, path: string): readonly FieldError[] {
  const { value = "" } = toleration;
  switch (operator) {
    case "":
    case "Equal": {
      const problems = labelValue(value);
      return problems.length === 0 ? [] : [invalidField(path, value, problems.join(";"))];
    }
    case "Exists":
      return value === "" ? [] : [invalidField(path, value, "value must be empty when `operator` is 'Exists'")];
    default:
      return [notSupported(path, operator, ["Equal", "Exists"])];
  }
}
