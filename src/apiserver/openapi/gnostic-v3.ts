/**
 * Encodes OpenAPI v3 documents in protobuf (package `openapi.v3` of google/gnostic). Contains only the messages and
 * fields that the documents use.
 */

import { boolean, double, int64, list, message, optional, pointer, string } from "../../schema/define.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { Field, ListSchema, ObjectSchema, Schema } from "../../schema/schema.ts";

type Json = Readonly<Record<string, unknown>>;

/** Maps are lists of names and values. */
function named(name: string, value: Schema | (() => Schema)): ObjectSchema {
  const fields: Readonly<Record<string, Field>> = { name: optional(1, string), value: optional(2, value) };
  return message(`openapi.v3.Named${name}`, fields);
}

const any = message("openapi.v3.Any", { yaml: optional(2, string) });
const extensions = list(named("Any", any));
const reference = message("openapi.v3.Reference", { ref: optional(1, string) });
const orReference: ObjectSchema = message("openapi.v3.SchemaOrReference", {
  schema: optional(1, (): ObjectSchema => schema),
  reference: optional(2, reference),
});
const schemasOrReferences: ListSchema = list(orReference);
const namedSchemas = message("openapi.v3.Properties", {
  additionalProperties: optional(1, list(named("SchemaOrReference", orReference))),
});
const schema: ObjectSchema = message("openapi.v3.Schema", {
  nullable: optional(1, boolean),
  multipleOf: optional(10, double),
  maximum: optional(11, double),
  exclusiveMaximum: optional(12, boolean),
  minimum: optional(13, double),
  exclusiveMinimum: optional(14, boolean),
  maxLength: optional(15, int64),
  minLength: optional(16, int64),
  pattern: optional(17, string),
  maxItems: optional(18, int64),
  minItems: optional(19, int64),
  uniqueItems: optional(20, boolean),
  maxProperties: optional(21, int64),
  minProperties: optional(22, int64),
  required: optional(23, list(string)),
  enum: optional(24, list(any)),
  type: optional(25, string),
  allOf: optional(26, schemasOrReferences),
  oneOf: optional(27, schemasOrReferences),
  anyOf: optional(28, schemasOrReferences),
  not: optional(29, (): ObjectSchema => schema),
  items: optional(30, message("openapi.v3.ItemsItem", { schemaOrReference: optional(1, schemasOrReferences) })),
  properties: optional(31, namedSchemas),
  additionalProperties: optional(
    32,
    message("openapi.v3.AdditionalPropertiesItem", {
      schemaOrReference: optional(1, orReference),
      boolean: pointer(2, boolean),
    }),
  ),
  default: optional(
    33,
    message("openapi.v3.DefaultType", {
      number: pointer(1, double),
      boolean: pointer(2, boolean),
      string: pointer(3, string),
    }),
  ),
  description: optional(34, string),
  format: optional(35, string),
  specificationExtension: optional(36, extensions),
});

const parameter = message("openapi.v3.Parameter", {
  name: optional(1, string),
  in: optional(2, string),
  description: optional(3, string),
  required: optional(4, boolean),
  schema: optional(10, orReference),
});
const parameters = list(message("openapi.v3.ParameterOrReference", { parameter: optional(1, parameter) }));
const mediaTypes = message("openapi.v3.MediaTypes", {
  additionalProperties: optional(
    1,
    list(named("MediaType", message("openapi.v3.MediaType", { schema: optional(1, orReference) }))),
  ),
});
const requestBody = message("openapi.v3.RequestBody", {
  content: optional(2, mediaTypes),
  required: optional(3, boolean),
});
const response = message("openapi.v3.Response", { description: optional(1, string), content: optional(3, mediaTypes) });
const responseOrReference = message("openapi.v3.ResponseOrReference", { response: optional(1, response) });
const responses = message("openapi.v3.Responses", {
  responseOrReference: optional(2, list(named("ResponseOrReference", responseOrReference))),
});
const operation = message("openapi.v3.Operation", {
  tags: optional(1, list(string)),
  description: optional(3, string),
  operationId: optional(5, string),
  parameters: optional(6, parameters),
  requestBody: optional(7, message("openapi.v3.RequestBodyOrReference", { requestBody: optional(1, requestBody) })),
  responses: optional(8, responses),
  specificationExtension: optional(13, extensions),
});
const pathItem = message("openapi.v3.PathItem", {
  get: optional(4, operation),
  put: optional(5, operation),
  post: optional(6, operation),
  delete: optional(7, operation),
  options: optional(8, operation),
  head: optional(9, operation),
  patch: optional(10, operation),
  parameters: optional(13, parameters),
});
const securityScheme = message("openapi.v3.SecurityScheme", {
  type: optional(1, string),
  description: optional(2, string),
  name: optional(3, string),
  in: optional(4, string),
});
const securitySchemes = message("openapi.v3.SecuritySchemesOrReferences", {
  additionalProperties: optional(
    1,
    list(
      named(
        "SecuritySchemeOrReference",
        message("openapi.v3.SecuritySchemeOrReference", { securityScheme: optional(1, securityScheme) }),
      ),
    ),
  ),
});
const components = message("openapi.v3.Components", {
  schemas: optional(1, namedSchemas),
  securitySchemes: optional(7, securitySchemes),
});
const document = message("openapi.v3.Document", {
  openapi: optional(1, string),
  info: optional(2, message("openapi.v3.Info", { title: optional(1, string), version: optional(6, string) })),
  paths: optional(4, message("openapi.v3.Paths", { path: optional(1, list(named("PathItem", pathItem))) })),
  components: optional(5, components),
});

/** Encodes a v3 document of `OpenApiDocument`. */
export function encodeGnosticV3(json: Json): Uint8Array {
  const { schemas, securitySchemes: schemes } = json.components as Json;
  return encodeProtobuf(document, {
    openapi: json.openapi,
    info: json.info,
    paths: { path: namedAs(json.paths, pathMessage) },
    components: {
      schemas: { additionalProperties: namedAs(schemas, schemaMessage) },
      securitySchemes: { additionalProperties: namedAs(schemes, (scheme) => ({ securityScheme: scheme })) },
    },
  });
}

function namedAs(value: unknown, message: (value: Json) => object) {
  const entries = Object.entries((value ?? {}) as Readonly<Record<string, Json>>);
  return entries.map(([name, content]) => ({ name, value: message(content) }));
}

function listOf(value: unknown, message: (value: Json) => object): readonly object[] {
  return ((value ?? []) as readonly Json[]).map(message);
}

/** The format represents values of any type as YAML, of which JSON is a subset. */
function anyMessage(value: unknown): object {
  return { yaml: `${stringifyExact(value)}\n` };
}

function extensionsOf(value: Json): readonly object[] {
  const marked = Object.entries(value).filter(([name]) => name.startsWith("x-"));
  return marked.map(([name, content]) => ({ name, value: anyMessage(content) }));
}

function schemaMessage(value: Json): object {
  return value.$ref === undefined ? { schema: bareSchema(value) } : { reference: { ref: value.$ref } };
}

function bareSchema(value: Json): object {
  const { items, properties, additionalProperties, not, default: byDefault } = value;
  return {
    ...value,
    enum: ((value.enum ?? []) as readonly unknown[]).map(anyMessage),
    allOf: listOf(value.allOf, schemaMessage),
    oneOf: listOf(value.oneOf, schemaMessage),
    anyOf: listOf(value.anyOf, schemaMessage),
    not: not === undefined ? undefined : bareSchema(not as Json),
    items: items === undefined ? undefined : { schemaOrReference: [schemaMessage(items as Json)] },
    properties: properties === undefined ? undefined : { additionalProperties: namedAs(properties, schemaMessage) },
    additionalProperties: additionalMessage(additionalProperties),
    default: byDefault === undefined ? undefined : defaultMessage(byDefault),
    specificationExtension: extensionsOf(value),
  };
}

function additionalMessage(value: unknown): object | undefined {
  if (value === undefined) return undefined;
  return typeof value === "boolean" ? { boolean: value } : { schemaOrReference: schemaMessage(value as Json) };
}

/** For other types the message only represents that there is a default. */
function defaultMessage(value: unknown): object {
  return ["number", "boolean", "string"].includes(typeof value) ? { [typeof value]: value } : {};
}

function pathMessage(value: Json): object {
  const operations = Object.entries(value).filter(([name]) => name !== "parameters");
  const messages = operations.map(([method, each]) => [method, operationMessage(each as Json)] as const);
  return { ...Object.fromEntries(messages), parameters: listOf(value.parameters, parameterMessage) };
}

function parameterMessage(value: Json): object {
  return { parameter: { ...value, schema: schemaMessage(value.schema as Json) } };
}

function operationMessage(value: Json): object {
  const body = value.requestBody as Json | undefined;
  return {
    ...value,
    parameters: listOf(value.parameters, parameterMessage),
    requestBody: body === undefined ? undefined : { requestBody: { ...body, content: contentMessage(body.content) } },
    responses: {
      responseOrReference: namedAs(value.responses, (each) => ({
        response: { ...each, content: each.content === undefined ? undefined : contentMessage(each.content) },
      })),
    },
    specificationExtension: extensionsOf(value),
  };
}

function contentMessage(value: unknown): object {
  return {
    additionalProperties: namedAs(value, (each) => ({ schema: schemaMessage(each.schema as Json) })),
  };
}
