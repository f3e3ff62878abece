/** The field paths of CustomResourceDefinitions: `.spec.size`, `.labels['app']`. They cannot refer to list items. */
import { isPlainObject } from "../value/plain-object.ts";
import { type JsonSchemaProps, propertyOf, valuesOf } from "./json-schema-props.ts";

export type PropertyPath =
  | {
      readonly steps: readonly string[];
      /** The schema of the field. */
      readonly schema: JsonSchemaProps;
      readonly problem?: undefined;
    }
  | { readonly problem: string };

export interface PropertyPathOptions {
  /** `['name']` besides `.name`. */
  readonly brackets?: boolean;
}

/** Resolves a path from a schema; `problem` explains why it is invalid. */
export function followPath(path: string, root: JsonSchemaProps, options: PropertyPathOptions = {}): PropertyPath {
  const tokens = path.match(/[.[\]]|'(?:[^'\\]|\\.)*'?|[^.[\]']+/gs) ?? [];
  const steps: string[] = [];
  let schema = root;
  for (let at = 0; at < tokens.length; ) {
    const read = readStep(tokens, at, options.brackets !== false);
    if (typeof read === "string") return { problem: read };
    const next = subschemaOf(schema, read.name);
    if (next === undefined) return { problem: "does not refer to a valid field" };
    steps.push(read.name);
    schema = next;
    at += read.length;
  }
  return { steps, schema };
}

interface Step {
  readonly name: string;
  /** In tokens. */
  readonly length: number;
}

function readStep(tokens: readonly string[], at: number, brackets: boolean): Step | string {
  const opener = tokens[at] ?? "";
  const name = tokens[at + 1];
  if (opener === "[" && !brackets) return "array notation is not allowed";
  if (opener !== "." && opener !== "[") return `expected [ or . but got: ${opener}`;
  if (name === undefined) return "unexpected end of JSON path";
  if (opener === ".") return { name, length: 2 };
  if (!/^'.*'$/s.test(name) || name.length < 2) return `expected single quoted string but got ${name}`;
  const closer = tokens[at + 2];
  if (closer === undefined) return "unexpected end of JSON path";
  return closer === "]" ? { name: unquote(name), length: 3 } : `expected ] but got ${closer}`;
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\(['\\])/g, "$1");
}

/** All members of a map have the same schema. */
function subschemaOf(schema: JsonSchemaProps, name: string): JsonSchemaProps | undefined {
  return isPlainObject(schema.properties) ? propertyOf(schema, name) : valuesOf(schema);
}
