import { isPlainObject } from "../plain.ts";
import { elementText } from "./path-element.ts";
import { IdentityError, type ItemsShape, type MembersShape, resolved, type Shape } from "./shape.ts";

/** What keeps a value from being applied; several are listed as Kubernetes lists them. */
export class ShapeError extends Error {
  constructor(findings: readonly string[]) {
    super(findings.length === 1 ? findings[0] : ["errors:", ...findings.map((text) => `  ${text}`)].join("\n"));
  }
}

/** Throws a `ShapeError` for members nobody declared, values of other types, and items of one identity. */
export function checkShape(shape: Shape, value: unknown): void {
  const findings: string[] = [];
  check(shape, value, "", findings);
  if (findings.length > 0) throw new ShapeError(findings);
}

function check(shape: Shape, value: unknown, path: string, findings: string[]): void {
  if (value === null || value === undefined) return;
  const form = resolved(shape, value);
  switch (form.form) {
    case "scalar":
      scalar(form.type, value, path, findings);
      break;
    case "atomic":
      container(form.content, value, path, findings);
      break;
    default:
      container(form, value, path, findings);
  }
}

function container(form: MembersShape | ItemsShape, value: unknown, path: string, findings: string[]): void {
  if (form.form === "members") {
    if (isPlainObject(value)) members(form, value, path, findings);
    else findings.push(found(path, `expected map, got ${goValue(value)}`));
  } else if (Array.isArray(value)) items(form, value, path, findings);
  else findings.push(found(path, `expected list, got ${goValue(value)}`));
}

/** The first unknown member ends the walk over an object. */
function members(
  { declared, rest }: MembersShape,
  value: Readonly<Record<string, unknown>>,
  path: string,
  findings: string[],
): void {
  for (const name of Object.keys(value)) {
    const shape = declared.get(name) ?? rest;
    if (shape === undefined) {
      findings.push(found(`${path}.${name}`, "field not declared in schema"));
      return;
    }
    check(shape, value[name], `${path}.${name}`, findings);
  }
}

function items({ items, elementOf }: ItemsShape, value: readonly unknown[], path: string, findings: string[]): void {
  const seen = new Set<string>();
  for (const [place, item] of value.entries()) {
    let text = `[${place}]`;
    if (elementOf !== undefined) {
      const element = identity(elementOf, item, place, path, findings);
      if (element === undefined) return;
      text = elementText(element);
      if (seen.has(element)) findings.push(found(path, `duplicate entries for key ${text}`));
      seen.add(element);
    }
    check(items, item, path + text, findings);
  }
}

function identity(
  elementOf: (item: unknown) => string,
  item: unknown,
  place: number,
  path: string,
  findings: string[],
): string | undefined {
  try {
    return elementOf(item);
  } catch (error) {
    if (!(error instanceof IdentityError)) throw error;
    findings.push(found(path, `element ${place}: ${error.message}`));
    return undefined;
  }
}

function scalar(type: string, value: unknown, path: string, findings: string[]): void {
  switch (type) {
    case "numeric":
      if (typeof value !== "number" && typeof value !== "bigint") {
        findings.push(found(path, `expected numeric (int or float), got ${goType(value)}`));
      }
      break;
    case "string":
      if (typeof value !== "string") {
        findings.push(found(path, `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`));
      }
      break;
    case "boolean":
      if (typeof value !== "boolean") findings.push(found(path, `expected boolean, got ${goValue(value)}`));
      break;
    case "untyped":
      if (typeof value === "object") findings.push(found(path, `expected any scalar, got ${goValue(value)}`));
  }
}

function found(path: string, what: string): string {
  return path === "" ? what : `${path}: ${what}`;
}

/** `%T` */
function goType(value: unknown): string {
  if (Array.isArray(value)) return "[]interface {}";
  if (typeof value === "object") return "map[string]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : "string";
}

/** `%v` */
function goValue(value: unknown): string {
  return `&{${goPlain(value)}}`;
}

function goPlain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(goPlain).join(" ")}]`;
  if (isPlainObject(value)) {
    const members = Object.keys(value).sort();
    return `map[${members.map((name) => `${name}:${goPlain(value[name])}`).join(" ")}]`;
  }
  return value === null ? "<nil>" : String(value);
}

/** `%#v` */
function goSyntax(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (isPlainObject(value)) {
    const members = Object.keys(value).sort();
    const texts = members.map((name) => `${JSON.stringify(name)}:${goSyntax(value[name])}`);
    return `map[string]interface {}{${texts.join(", ")}}`;
  }
  return value === null ? "interface {}(nil)" : JSON.stringify(value);
}
