/** Bounds the time that all patterns of a definition take to compile. */
import { someSubschema } from "../../../schema/structural/json-schema-props.ts";
import { type FieldError, forbiddenField } from "../../../schema/validation/field-error.ts";
import { patternSize } from "../../../schema/validation/pattern-size.ts";
import type { CustomResourceDefinitionSpec } from "./schema.ts";

/** Instructions of all different patterns; the maximum takes about 50 ms. */
const SIZE_MAX = 25_000;
/** What each pattern costs besides its instructions, and characters that cost as much as one. */
const SIZE_EACH = 20;
const CHARACTERS_PER_INSTRUCTION = 8;

export function validatePatternCosts(spec: CustomResourceDefinitionSpec): readonly FieldError[] {
  const patterns = new Set<string>();
  let size = 0;
  for (const { schema } of spec.versions) {
    if (schema?.openAPIV3Schema === undefined) continue;
    someSubschema(schema.openAPIV3Schema, ({ pattern = "" }) => {
      if (pattern === "" || patterns.has(pattern)) return false;
      patterns.add(pattern);
      size += SIZE_EACH + Math.max(patternSize(pattern), Math.ceil(pattern.length / CHARACTERS_PER_INSTRUCTION));
      return size > SIZE_MAX;
    });
  }
  // A single pattern has its own limit.
  if (size <= SIZE_MAX || patterns.size === 1) return [];
  return [forbiddenField("spec.versions", "the patterns of all schemas take too long to compile; use fewer of them")];
}
