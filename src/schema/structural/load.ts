/**
 * Loads the schema of a CustomResourceDefinition:
 *
 *     const { schema, errors } = load(version.schema.openAPIV3Schema, { name: "example.com/v1.Widget", metadata });
 *     if (schema === undefined) throw new Error(errors.map(renderFieldError).join("; "));
 *
 * The checks stand apart: `invariants.ts` (is it structural?), `defaults.ts`, `keywords.ts` (is it supported?).
 */

import type { ObjectSchema } from "../schema.ts";
import type { FieldError } from "../validation/field-error.ts";
import { convertResource } from "./convert.ts";
import { type DefaultsOptions, validateDefaults } from "./defaults.ts";
import { validateStructural } from "./invariants.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";
import { type KeywordOptions, usesUnsupportedKeywords, validateKeywords } from "./keywords.ts";

export interface LoadOptions extends DefaultsOptions, KeywordOptions {
  /** The field that holds the schema, for errors: `spec.validation.openAPIV3Schema`. */
  readonly path?: string;
  /** Schemas of old may say less than a structural one must; false lets them. */
  readonly requireStructural?: boolean;
}

export type LoadResult =
  | { readonly schema: ObjectSchema; readonly errors?: undefined }
  | { readonly schema?: undefined; readonly errors: readonly FieldError[] };

export function load(props: JsonSchemaProps, options: LoadOptions): LoadResult {
  const errors = findSchemaErrors(props, options);
  return errors.length > 0 ? { errors } : { schema: convertResource(props, options) };
}

/** What Kubernetes says of a schema, in its order. Expressions are looked at only where everything else is right. */
export function findSchemaErrors(props: JsonSchemaProps, options: LoadOptions): readonly FieldError[] {
  const { path = "openAPIV3Schema", requireStructural = true } = options;
  // Of a schema that says what no structural schema can, only that is worth telling.
  if (!requireStructural || usesUnsupportedKeywords(props))
    return validateKeywords(props, path, withoutExpressions(options));
  const unstructural = validateStructural(props, path);
  // Looked at even where it is no schema of ours: the one message that helps may be there.
  const errors = unstructural.length > 0 ? unstructural : validateDefaults(asEmbeddedResource(props), path, options);
  return [...errors, ...validateKeywords(props, path, errors.length > 0 ? withoutExpressions(options) : options)];
}

function asEmbeddedResource(props: JsonSchemaProps): JsonSchemaProps {
  return { ...props, "x-kubernetes-embedded-resource": true };
}

function withoutExpressions(options: KeywordOptions): KeywordOptions {
  const { expressions: _, ...rest } = options;
  return rest;
}
