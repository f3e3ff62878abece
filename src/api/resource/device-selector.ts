/** CEL expressions that select devices. */
import { compile } from "../../cel/cel.ts";
import { createEnvironment } from "../../cel/environment.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import { boolType, dynType, formatType, mapType, objectType, opaqueType, stringType } from "../../cel/values/types.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  requiredField,
  tooLong,
} from "../../schema/validation/field-error.ts";
import { nameFormats } from "../meta/validation/name-formats.ts";
import type { DeviceSelector } from "./schemas.ts";
import { validateList } from "./validation-helpers.ts";

const SELECTORS_MAX = 32;
const EXPRESSION_BYTES_MAX = 10 * 1024;
const COST_MAX = 1_000_000;

/** Attributes and capacities by domain, then by name; a device has at most 32 of them. */
const PER_DEVICE_MAX = 32;
const byDomain = (value: Parameters<typeof mapType>[1]) =>
  mapType(stringType, mapType(stringType, value, { maxElements: PER_DEVICE_MAX }), { maxElements: PER_DEVICE_MAX });

const deviceType = objectType("kubernetes.DRADevice", {
  driver: { kind: "string", maxElements: 63 },
  attributes: byDomain(dynType),
  capacity: byDomain(opaqueType("kubernetes.Quantity")),
});

/** Versions are available, unlike in other new expressions. */
const environment = createEnvironment({ variables: { device: deviceType }, nameFormats, stored: true });

/** Expressions that are stored are not checked again. */
export function validateSelectors(
  selectors: readonly DeviceSelector[] | undefined,
  path: string,
  isStored: boolean,
): readonly FieldError[] {
  return validateList(selectors, SELECTORS_MAX, path, ({ cel }, at) =>
    cel === undefined
      ? [requiredField(`${at}.cel`)]
      : validateExpression(cel.expression, `${at}.cel.expression`, isStored),
  );
}

function validateExpression(expression: string, path: string, isStored: boolean): readonly FieldError[] {
  if (Buffer.byteLength(expression) > EXPRESSION_BYTES_MAX) return [tooLong(path, EXPRESSION_BYTES_MAX)];
  if (isStored) return [];
  const { program, errors } = compile(expression, environment);
  if (program === undefined) {
    return [invalidField(path, expression, `compilation failed: ${renderErrors(errors, expression)}`)];
  }
  const type = program.resultType;
  if (type.kind !== "bool" && type.kind !== "dyn") {
    const detail = `must evaluate to ${formatType(boolType)} or the unknown type, not ${formatType(type)}`;
    return [invalidField(path, expression, detail)];
  }
  return program.estimate.max > COST_MAX ? [forbiddenField(path, "too complex, exceeds cost limit")] : [];
}
