/** The schema of JSONSchemaProps, the OpenAPI schema in a CustomResourceDefinition. It is recursive. */
import {
  boolean,
  documentedEnum,
  double,
  int64,
  list,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
} from "../../../schema/define.ts";
import type {
  Describes,
  EitherSchema,
  Infer,
  ListSchema,
  MapSchema,
  ObjectSchema,
  RawSchema,
} from "../../../schema/schema.ts";
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";

export const json: RawSchema = { type: "raw", format: "json" };

export const validationRule = object("apiextensions/v1.ValidationRule", {
  rule: required(1, string),
  message: optional(2, string),
  messageExpression: optional(3, string),
  reason: pointer(
    4,
    named(
      "v1.FieldValueErrorReason",
      documentedEnum("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"),
    ),
  ),
  fieldPath: optional(5, string),
  optionalOldSelf: pointer(6, boolean),
});

export const externalDocumentation = object("apiextensions/v1.ExternalDocumentation", {
  description: optional(1, string),
  url: optional(2, string),
});
export type ExternalDocumentation = Infer<typeof externalDocumentation>;

const self = (): ObjectSchema & Describes<JsonSchemaProps> => jsonSchemaProps;

/** Evaluates `make` at the first use, when the schemas that it refers to are defined. */
function once<S>(make: () => S): () => S {
  let made: S | undefined;
  return () => (made ??= make());
}
const schemas = once<ListSchema>(() => list(self()));
const schemasByName = once<MapSchema>(() => map(self()));

export const jsonSchemaPropsOrArray: EitherSchema = {
  type: "either",
  name: "apiextensions/v1.JSONSchemaPropsOrArray",
  expected: "JSON schema or array of JSON schemas expected",
  object: { number: 1, schema: self },
  list: { number: 2, schema: schemas },
};

export const jsonSchemaPropsOrBool: EitherSchema = {
  type: "either",
  name: "apiextensions/v1.JSONSchemaPropsOrBool",
  expected: "boolean or JSON schema expected",
  boolean: 1,
  object: { number: 2, schema: self },
};

export const jsonSchemaPropsOrStringArray: EitherSchema = {
  type: "either",
  name: "apiextensions/v1.JSONSchemaPropsOrStringArray",
  expected: "JSON schema or array of strings expected",
  object: { number: 1, schema: self },
  list: { number: 2, schema: once<ListSchema>(() => list(string)) },
};

/** TypeScript cannot infer a recursive type: `JsonSchemaProps` is declared by hand. */
export const jsonSchemaProps = object("apiextensions/v1.JSONSchemaProps", {
  id: optional(1, string),
  $schema: optional(2, named("v1.JSONSchemaURL", string)),
  $ref: pointer(3, string),
  description: optional(4, string),
  type: optional(5, string),
  format: optional(6, string),
  title: optional(7, string),
  default: pointer(8, json),
  maximum: pointer(9, double),
  exclusiveMaximum: optional(10, boolean),
  minimum: pointer(11, double),
  exclusiveMinimum: optional(12, boolean),
  maxLength: pointer(13, int64),
  minLength: pointer(14, int64),
  pattern: optional(15, string),
  maxItems: pointer(16, int64),
  minItems: pointer(17, int64),
  uniqueItems: optional(18, boolean),
  multipleOf: pointer(19, double),
  enum: optional(20, list(json)),
  maxProperties: pointer(21, int64),
  minProperties: pointer(22, int64),
  required: optional(23, list(string)),
  items: pointer(24, jsonSchemaPropsOrArray),
  allOf: optional(25, schemas),
  oneOf: optional(26, schemas),
  anyOf: optional(27, schemas),
  not: pointer(28, self),
  properties: optional(29, schemasByName),
  additionalProperties: pointer(30, jsonSchemaPropsOrBool),
  patternProperties: optional(31, schemasByName),
  dependencies: optional(32, map(jsonSchemaPropsOrStringArray)),
  additionalItems: pointer(33, jsonSchemaPropsOrBool),
  definitions: optional(34, schemasByName),
  externalDocs: pointer(35, externalDocumentation),
  example: pointer(36, json),
  nullable: optional(37, boolean),
  "x-kubernetes-preserve-unknown-fields": pointer(38, boolean),
  "x-kubernetes-embedded-resource": optional(39, boolean),
  "x-kubernetes-int-or-string": optional(40, boolean),
  "x-kubernetes-list-map-keys": optional(41, list(string)),
  "x-kubernetes-list-type": pointer(42, string),
  "x-kubernetes-map-type": pointer(43, string),
  "x-kubernetes-validations": optional(44, listMap(validationRule, "rule"), {
    patchStrategy: "merge",
    patchMergeKey: "rule",
  }),
}) as ObjectSchema & Describes<JsonSchemaProps>;
