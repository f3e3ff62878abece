/**
 * Loads the schema of a CustomResourceDefinition:
 *
 *     const { schema, errors } = load(version.schema.openAPIV3Schema, { name: "example.com/v1.Widget", metadata });
 *     if (schema === undefined) throw new Error(errors.map(renderFieldError).join("; "));
 *
 * The checks are in `invariants.ts` (structural schemas), `defaults.ts` and `keywords.ts` (supported keywords).
 */

import { runSteps, type Steps } from "../../std/async/steps.ts";
import type { ObjectSchema } from "../schema.ts";
import type { FieldError } from "../validation/field-error.ts";
import { convertResource } from "./convert.ts";
import { type DefaultsOptions, validateDefaults } from "./defaults.ts";
import { validateStructural } from "./invariants.ts";
import type { JsonSchemaProps } from "./json-schema-props.ts";
import { type KeywordOptions, usesUnsupportedKeywords, validateKeywords } from "./keywords.ts";

export interface LoadOptions extends DefaultsOptions, KeywordOptions {
  /** The field of the schema, for errors: `spec.validation.openAPIV3Schema`. */
  readonly path?: string;
  /** False allows schemas that are not structural, as in definitions that were stored long ago. */
  readonly requireStructural?: boolean;
}

export type LoadResult =
  | { readonly schema: ObjectSchema; readonly errors?: undefined }
  | { readonly schema?: undefined; readonly errors: readonly FieldError[] };

export function load(props: JsonSchemaProps, options: LoadOptions): LoadResult {
  const errors = runSteps(findSchemaErrors(props, options));
  return errors.length > 0 ? { errors } : { schema: convertResource(props, options) };
}

/** Returns Kubernetes' errors in its order. Checks CEL rules only when everything else is valid. */
export function* findSchemaErrors(props: JsonSchemaProps, options: LoadOptions): Steps<readonly FieldError[]> {
  const { path = "openAPIV3Schema", requireStructural = true } = options;
  // Kubernetes reports only unsupported keywords when there are any.
  if (!requireStructural || usesUnsupportedKeywords(props))
    return yield* validateKeywords(props, path, omitExpressions(options));
  yield;
  const structuralErrors = yield* validateStructural(props, path);
  yield;
  // Keywords are validated even if the schema is not structural, since their errors can explain why.
  const errors =
    structuralErrors.length > 0 ? structuralErrors : yield* validateDefaults(asEmbeddedResource(props), path, options);
  yield;
  const others = yield* validateKeywords(props, path, errors.length > 0 ? omitExpressions(options) : options);
  return [...errors, ...others];
}

function asEmbeddedResource(props: JsonSchemaProps): JsonSchemaProps {
  return { ...props, "x-kubernetes-embedded-resource": true };
}

function omitExpressions(options: KeywordOptions): KeywordOptions {
  const { expressions: _, ...rest } = options;
  return rest;
}
