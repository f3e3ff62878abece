import { stringifyExact } from "../json/exact-numbers.ts";
import { formatGoValue, GO_VALUE_MAX } from "../value/format-go-value.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { fieldElement, formatElement } from "./fieldpath/path-element.ts";
import { IdentityError, type ItemsShape, type MembersShape, resolveShape, type Shape } from "./shape.ts";

/** The errors that prevent a value from being applied, joined as structured-merge-diff joins them. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";

  constructor(errors: readonly string[]) {
    super(errors.length === 1 ? errors[0] : ["errors:", ...errors.map((text) => `  ${text}`)].join("\n"));
  }
}

/** Throws a `ShapeError` for undeclared members, values of the wrong type and items with duplicate keys. */
export function validateTyped(shape: Shape, value: unknown): void {
  const context = new ValidationContext();
  checkValue(shape, value, context);
  if (context.errors.length > 0) throw new ShapeError(context.errors);
}

/** The maximum number of errors: validation stops there. */
const ERRORS_MAX = 100;

class ValidationContext {
  readonly errors: string[] = [];
  /** The path to the value: elements, or indexes of items without identity. */
  readonly steps: (string | number)[] = [];

  get isFull(): boolean {
    return this.errors.length >= ERRORS_MAX;
  }

  report(error: string): void {
    if (this.isFull) return;
    const path = this.steps.map((step) => (typeof step === "number" ? `[${step}]` : formatElement(step))).join("");
    this.errors.push(path === "" ? error : `${path}: ${error}`);
  }
}

function checkValue(shape: Shape, value: unknown, context: ValidationContext): void {
  if (value === null || value === undefined) return;
  const resolved = resolveShape(shape, value);
  switch (resolved.kind) {
    case "scalar":
      checkScalar(resolved.type, value, context);
      break;
    case "atomic":
      checkContainer(resolved.content, value, context);
      break;
    default:
      checkContainer(resolved, value, context);
  }
}

function checkContainer(shape: MembersShape | ItemsShape, value: unknown, context: ValidationContext): void {
  if (shape.kind === "members") {
    if (isPlainObject(value)) checkMembers(shape, value, context);
    else context.report(`expected map, got ${formatPointer(value)}`);
  } else if (Array.isArray(value)) checkItems(shape, value, context);
  else context.report(`expected list, got ${formatPointer(value)}`);
}

/** Stops at the first unknown member. */
function checkMembers(
  { declared, rest }: MembersShape,
  value: Readonly<Record<string, unknown>>,
  context: ValidationContext,
): void {
  for (const name of Object.keys(value)) {
    const shape = declared.get(name) ?? rest;
    const member = value[name];
    // Fast path: most members are strings.
    if (typeof member === "string" && shape?.kind === "scalar" && shape.type === "string") continue;
    context.steps.push(fieldElement(name));
    if (shape === undefined) context.report("field not declared in schema");
    else checkValue(shape, member, context);
    context.steps.pop();
    if (shape === undefined || context.isFull) return;
  }
}

function checkItems({ items, elementOf }: ItemsShape, value: readonly unknown[], context: ValidationContext): void {
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    if (context.isFull) return;
    let step: string | number = index;
    if (elementOf !== undefined) {
      const element = identifyItem(elementOf, item, index, context);
      if (element === undefined) return;
      if (seen.has(element)) context.report(`duplicate entries for key ${formatElement(element)}`);
      seen.add(element);
      step = element;
    }
    context.steps.push(step);
    checkValue(items, item, context);
    context.steps.pop();
  }
}

function identifyItem(
  elementOf: (item: unknown) => string,
  item: unknown,
  index: number,
  context: ValidationContext,
): string | undefined {
  try {
    return elementOf(item);
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    context.report(`element ${index}: ${error.message}`);
    return undefined;
  }
}

function checkScalar(type: string, value: unknown, context: ValidationContext): void {
  switch (type) {
    case "numeric":
      if (typeof value !== "number" && typeof value !== "bigint") {
        context.report(`expected numeric (int or float), got ${goType(value)}`);
      }
      break;
    case "string":
      if (typeof value !== "string") {
        context.report(
          `expected string, got &value.valueUnstructured{Value:${formatGoSyntax(value).slice(0, GO_VALUE_MAX)}}`,
        );
      }
      break;
    case "boolean":
      if (typeof value !== "boolean") context.report(`expected boolean, got ${formatPointer(value)}`);
      break;
    case "untyped":
      if (typeof value === "object") context.report(`expected any scalar, got ${formatPointer(value)}`);
  }
}

/** `%T` */
function goType(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (typeof value === "object") return "map[string]interface {}";
  if (typeof value === "bigint") return "int64";
  if (typeof value === "symbol") return "structpb.NullValue";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}

/** `%v` of a pointer to a struct with the value. */
function formatPointer(value: unknown): string {
  return `&{${formatGoValue(value)}}`;
}

/** `%#v` */
function formatGoSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(formatGoSyntax).join(", ")}}`;
  if (isPlainObject(value)) {
    const members = Object.keys(value).sort();
    const texts = members.map((name) => `${JSON.stringify(name)}:${formatGoSyntax(value[name])}`);
    return `map[string]interface {}{${texts.join(", ")}}`;
  }
  if (typeof value === "symbol") return "0";
  return value === null ? "interface {}(nil)" : stringifyExact(value);
}
