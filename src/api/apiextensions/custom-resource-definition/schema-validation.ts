/** Rules for the schema of a version: its root, its structure, the cost of its CEL rules. */
import type { Schema } from "../../../schema/schema.ts";
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import { findSchemaErrors } from "../../../schema/structural/load.ts";
import { type FieldError, forbiddenField, invalidField, unstructured } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import type { Steps } from "../../../std/async/steps.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { validateEmbedded } from "../custom-resource/embedded-resources.ts";
import { evaluateRules } from "../custom-resource/rule-evaluation.ts";
import { RuleCosts, type RuleCostsOptions } from "./rule-costs.ts";
import type { SchemaValidationOptions } from "./validation-options.ts";

export interface SchemaOptions extends SchemaValidationOptions, Omit<RuleCostsOptions, "isStoredExpression"> {
  /** The version has a status subresource, so that the root must not have rules about the status. */
  readonly status: boolean;
}

export function* validateSchema(
  schema: JsonSchemaProps | undefined,
  path: string,
  options: SchemaOptions,
): Steps<readonly FieldError[]> {
  if (schema === undefined) return [];
  const field = child(path, "openAPIV3Schema");
  const errors = options.status ? [...checkRoot(schema, field)] : [];
  if (schema.nullable === true)
    errors.push(forbiddenField(child(field, "nullable"), "nullable cannot be true at the root"));
  const expressions = new RuleCosts(options);
  const found = yield* findSchemaErrors(schema, {
    ...options,
    name: "resource",
    metadata: objectMeta,
    path: field,
    expressions,
    validateResources: (part, value, at) => validateEmbedded(part, value, at, false),
    validateExpressions: evaluateDefault,
  });
  return [...errors, ...found, ...expressions.totalErrors(field)];
}

function* evaluateDefault(schema: Schema, value: unknown, field: string): Steps<readonly FieldError[]> {
  return (yield* evaluateRules(schema, value, { field, old: value })).errors;
}

/** Go names of the fields; the JSON names are derived from them. */
const rootFields = [
  "Description",
  "Type",
  "Format",
  "Title",
  "Maximum",
  "ExclusiveMaximum",
  "Minimum",
  "ExclusiveMinimum",
  "MaxLength",
  "MinLength",
  "Pattern",
  "MaxItems",
  "MinItems",
  "UniqueItems",
  "MultipleOf",
  "Required",
  "Items",
  "Properties",
  "ExternalDocs",
  "Example",
  "XPreserveUnknownFields",
  "XValidations",
];
const rootMembers = new Set([
  ...rootFields.map((name) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`),
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
]);

/** Kubernetes reports only the first invalid field, in the order of its Go fields. */
function checkRoot(schema: JsonSchemaProps, field: string): readonly FieldError[] {
  const enabled = "if the status subresource is enabled";
  const { type = "" } = schema;
  if (type !== "" && type !== "object") {
    const why = `only "object" is allowed as the type at the root of the schema ${enabled}`;
    return [invalidField(child(field, "type"), type, why)];
  }
  const other = Object.entries(schema).some(
    ([name, value]) => value !== undefined && value !== false && value !== "" && !rootMembers.has(name),
  );
  if (!other) return [];
  const why = `only [${rootFields.join(" ")}] fields are allowed at the root of the schema ${enabled}`;
  return [invalidField(field, unstructured(schema), why)];
}
