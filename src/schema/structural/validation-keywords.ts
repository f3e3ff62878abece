/** Validates the members of `x-kubernetes-validations` rules other than the expressions. */
import { type FieldError, invalidField, notSupported, requiredField, validateEach } from "../validation/field-error.ts";
import type { ValidationRule } from "../validation/rules.ts";
import { child, index } from "../value/field-path.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";
import { followPath } from "./property-path.ts";

const reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"] as const;

export function checkValidations(props: JsonSchemaProps, path: string): readonly FieldError[] {
  return validateEach(props["x-kubernetes-validations"] ?? [], (rule, i) =>
    checkRule(rule, props, index(child(path, "x-kubernetes-validations"), i)),
  );
}

function checkRule(rule: ValidationRule, props: JsonSchemaProps, path: string): readonly FieldError[] {
  const { message = "", messageExpression = "", fieldPath = "", reason } = rule;
  const errors = [...checkTexts(rule.rule, message, path)];
  if (messageExpression !== "" && messageExpression.trim() === "") {
    const why = "messageExpression must be non-empty if specified";
    errors.push(requiredField(child(path, "messageExpression"), why));
  }
  if (reason !== undefined && !(reasons as readonly string[]).includes(reason)) {
    errors.push(notSupported(child(path, "reason"), reason, reasons));
  }
  if (fieldPath === "") return errors;
  const wrong = (why: string): number => errors.push(invalidField(child(path, "fieldPath"), fieldPath, why));
  if (fieldPath.trim() === "") wrong("fieldPath must be non-empty if specified");
  if (hasLineBreaks(fieldPath)) wrong("fieldPath must not contain line breaks");
  if (followPath(fieldPath, props).problem !== undefined) wrong("fieldPath must be a valid path");
  return errors;
}

function checkTexts(rule: string, message: string, path: string): readonly FieldError[] {
  const field = child(path, "message");
  if (rule.trim() === "") return [requiredField(child(path, "rule"), "rule is not specified")];
  if (message !== "" && message.trim() === "") {
    return [invalidField(field, message, "message must be non-empty if specified")];
  }
  if (hasLineBreaks(message.trim())) return [invalidField(field, message, "message must not contain line breaks")];
  if (hasLineBreaks(rule.trim()) && message === "") {
    return [requiredField(field, "message must be specified if rule contains line breaks")];
  }
  return [];
}

function hasLineBreaks(text: string): boolean {
  return /[\r\n]/.test(text);
}
