/** A document without the mistakes of its structure, so that its loader also reports the values that are wrong. */

import { parseExact, stringifyExact } from "../../schema/json/exact-numbers.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { splitPath } from "../../schema/value/field-path.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import type { Problem, Source } from "./problem.ts";
import { findIntendedField } from "./structure.ts";

/** A misspelt field gets the name that is suggested; other fields with a problem are left out. */
export function repairStructure(source: Source, schema: ObjectSchema, structure: readonly Problem[]): Source {
  const root = parseExact(stringifyExact(source.document?.value));
  // Deeper fields first, so that the paths of the others stay valid.
  const fields = structure.map(({ field }) => field).sort((a, b) => splitPath(b).length - splitPath(a).length);
  for (const field of new Set(fields)) {
    if (source.document?.duplicates.includes(field) !== true) repairField(root, schema, field);
  }
  const text = stringifyExact(root);
  return { ...source, text, document: parseYaml(text)[0] };
}

function repairField(root: unknown, schema: ObjectSchema, field: string): void {
  const steps = splitPath(field);
  // An item of a list is left out with the list: the positions of the others stay.
  while (typeof steps.at(-1) === "number") steps.pop();
  const name = steps.pop();
  let parent: unknown = root;
  for (const step of steps) parent = (parent as Readonly<Record<string | number, unknown>> | undefined)?.[step];
  if (!isPlainObject(parent) || typeof name !== "string") return;
  const members = parent as Record<string, unknown>;
  const value = members[name];
  delete members[name];
  const intended = findIntendedField(schema, field);
  if (intended !== undefined && !Object.hasOwn(members, intended)) members[intended] = value;
}
