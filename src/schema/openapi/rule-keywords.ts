/** Converts the value rules of a schema to OpenAPI keywords. Version 2 has neither junctors nor `nullable`. */

import type { Schema } from "../schema.ts";
import type { Rules } from "../validation/rules.ts";
import type { OpenApiSchema, OpenApiVersion } from "./schema-object.ts";

export function ruleKeywords({ rules = {}, nullable }: Schema, version: OpenApiVersion): OpenApiSchema {
  const { types: _, ...others } = rules;
  return { ...keywords(others, version), ...(nullable === true && version === 3 ? { nullable: true } : {}) };
}

function keywords(rules: Rules, version: OpenApiVersion): OpenApiSchema {
  const { types, closed, allOf, anyOf, oneOf, not, properties, items, validations, ...plain } = rules;
  const junctions = version === 2 ? {} : { allOf, anyOf, oneOf };
  const result: Record<string, unknown> = types?.length === 1 ? { type: types[0], ...plain } : { ...plain };
  if (closed === true) result.additionalProperties = false;
  for (const [name, parts] of Object.entries(junctions)) {
    if (parts !== undefined) result[name] = parts.map((part) => keywords(part, version));
  }
  if (not !== undefined && version === 3) result.not = keywords(not, version);
  if (items !== undefined) result.items = keywords(items, version);
  if (properties !== undefined) {
    const members = Object.entries(properties).map(([name, part]) => [name, keywords(part, version)] as const);
    result.properties = Object.fromEntries(members);
  }
  if (validations !== undefined) result["x-kubernetes-validations"] = validations;
  return result;
}
