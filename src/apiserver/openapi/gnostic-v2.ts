/**
 * Encodes OpenAPI v2 documents in protobuf (package `openapi.v2` of google/gnostic), which kubectl before 1.27
 * requests. Contains only the messages and fields that the documents use.
 */

import { boolean, list, message, optional, string } from "../../schema/define.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import type { Describes, Infer, ObjectSchema } from "../../schema/schema.ts";

const any = message("openapi.v2.Any", { yaml: optional(2, string) });
const namedAny = message("openapi.v2.NamedAny", { name: optional(1, string), value: optional(2, any) });

interface SchemaMessage {
  readonly ref?: string | undefined;
  readonly format?: string | undefined;
  readonly description?: string | undefined;
  readonly default?: Infer<typeof any> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly enum?: readonly Infer<typeof any>[] | undefined;
  readonly additionalProperties?: { readonly schema?: SchemaMessage | undefined } | undefined;
  readonly type?: { readonly value?: readonly string[] | undefined } | undefined;
  readonly items?: { readonly schema?: readonly SchemaMessage[] | undefined } | undefined;
  readonly properties?: { readonly additionalProperties?: readonly NamedSchema[] | undefined } | undefined;
  readonly vendorExtension?: readonly Infer<typeof namedAny>[] | undefined;
}

interface NamedSchema {
  readonly name?: string | undefined;
  readonly value?: SchemaMessage | undefined;
}

// Schemas are recursive: fields reference the schema lazily.
const self = (): ObjectSchema & Describes<SchemaMessage> => schema;
const namedSchema = message("openapi.v2.NamedSchema", { name: optional(1, string), value: optional(2, self) });
const properties = message("openapi.v2.Properties", { additionalProperties: optional(1, list(namedSchema)) });
const typeItem = message("openapi.v2.TypeItem", { value: optional(1, list(string)) });
const schemaItem = message("openapi.v2.AdditionalPropertiesItem", { schema: optional(1, self) });
const item = message("openapi.v2.ItemsItem", { schema: optional(1, () => schemaList) });
const schema: ObjectSchema & Describes<SchemaMessage> = message("openapi.v2.Schema", {
  ref: optional(1, string),
  format: optional(2, string),
  description: optional(4, string),
  default: optional(5, any),
  required: optional(19, list(string)),
  enum: optional(20, list(any)),
  additionalProperties: optional(21, schemaItem),
  type: optional(22, typeItem),
  items: optional(23, item),
  properties: optional(25, properties),
  vendorExtension: optional(31, list(namedAny)),
});
const schemaList = list(schema);

const queryParameter = message("openapi.v2.QueryParameterSubSchema", {
  in: optional(2, string),
  description: optional(3, string),
  name: optional(4, string),
  type: optional(6, string),
  uniqueItems: optional(20, boolean),
});
const pathParameter = message("openapi.v2.PathParameterSubSchema", {
  required: optional(1, boolean),
  in: optional(2, string),
  description: optional(3, string),
  name: optional(4, string),
  type: optional(5, string),
  uniqueItems: optional(19, boolean),
});
const bodyParameter = message("openapi.v2.BodyParameter", {
  name: optional(2, string),
  in: optional(3, string),
  required: optional(4, boolean),
  schema: optional(5, schema),
});
const nonBodyParameter = message("openapi.v2.NonBodyParameter", {
  queryParameter: optional(3, queryParameter),
  pathParameter: optional(4, pathParameter),
});
const parameter = message("openapi.v2.Parameter", {
  bodyParameter: optional(1, bodyParameter),
  nonBodyParameter: optional(2, nonBodyParameter),
});
const parametersItem = message("openapi.v2.ParametersItem", { parameter: optional(1, parameter) });
const schemaOrFile = message("openapi.v2.SchemaItem", { schema: optional(1, schema) });
const response = message("openapi.v2.Response", {
  description: optional(1, string),
  schema: optional(2, schemaOrFile),
});
const responseValue = message("openapi.v2.ResponseValue", { response: optional(1, response) });
const namedResponse = message("openapi.v2.NamedResponseValue", {
  name: optional(1, string),
  value: optional(2, responseValue),
});
const responses = message("openapi.v2.Responses", { responseCode: optional(1, list(namedResponse)) });
const operation = message("openapi.v2.Operation", {
  tags: optional(1, list(string)),
  description: optional(3, string),
  operationId: optional(5, string),
  produces: optional(6, list(string)),
  consumes: optional(7, list(string)),
  parameters: optional(8, list(parametersItem)),
  responses: optional(9, responses),
  schemes: optional(10, list(string)),
  vendorExtension: optional(13, list(namedAny)),
});
const pathItem = message("openapi.v2.PathItem", {
  get: optional(2, operation),
  put: optional(3, operation),
  post: optional(4, operation),
  delete: optional(5, operation),
  options: optional(6, operation),
  head: optional(7, operation),
  patch: optional(8, operation),
  parameters: optional(9, list(parametersItem)),
});
const namedPathItem = message("openapi.v2.NamedPathItem", { name: optional(1, string), value: optional(2, pathItem) });
const document = message("openapi.v2.Document", {
  swagger: optional(1, string),
  info: optional(2, message("openapi.v2.Info", { title: optional(1, string), version: optional(2, string) })),
  paths: optional(8, message("openapi.v2.Paths", { path: optional(2, list(namedPathItem)) })),
  definitions: optional(9, message("openapi.v2.Definitions", { additionalProperties: optional(1, list(namedSchema)) })),
});

type Json = Readonly<Record<string, unknown>>;

/** Encodes a v2 document of `OpenApiDocument`. */
export function encodeGnostic(json: Json): Uint8Array {
  const info = json.info as { readonly title: string; readonly version: string };
  return encodeProtobuf(document, {
    swagger: "2.0",
    info,
    paths: { path: entries(json.paths).map(([name, value]) => ({ name, value: pathMessage(value) })) },
    definitions: { additionalProperties: namedSchemas(json.definitions) },
  });
}

function entries(value: unknown): readonly (readonly [string, Json])[] {
  return Object.entries((value ?? {}) as Readonly<Record<string, Json>>);
}

function texts(value: unknown): readonly string[] {
  return (value ?? []) as readonly string[];
}

/** The format represents values of any type as YAML, of which JSON is a subset. */
function anyOf(value: unknown): Infer<typeof any> {
  return { yaml: `${stringifyExact(value)}\n` };
}

function extensions(value: Json): readonly Infer<typeof namedAny>[] {
  return Object.entries(value)
    .filter(([name]) => name.startsWith("x-"))
    .map(([name, content]) => ({ name, value: anyOf(content) }));
}

function namedSchemas(value: unknown): readonly NamedSchema[] {
  return entries(value).map(([name, content]) => ({ name, value: schemaMessage(content) }));
}

function schemaMessage(value: Json): SchemaMessage {
  const { $ref, format, description, type, required, items, additionalProperties } = value;
  return {
    ...($ref === undefined ? {} : { ref: String($ref) }),
    ...(format === undefined ? {} : { format: String(format) }),
    ...(description === undefined ? {} : { description: String(description) }),
    ...(value.default === undefined ? {} : { default: anyOf(value.default) }),
    required: texts(required),
    ...(value.enum === undefined ? {} : { enum: (value.enum as readonly unknown[]).map(anyOf) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: { schema: schemaMessage(additionalProperties as Json) } }),
    ...(type === undefined ? {} : { type: { value: [String(type)] } }),
    ...(items === undefined ? {} : { items: { schema: [schemaMessage(items as Json)] } }),
    ...(value.properties === undefined ? {} : { properties: { additionalProperties: namedSchemas(value.properties) } }),
    vendorExtension: extensions(value),
  };
}

function pathMessage(value: Json): Infer<typeof pathItem> {
  const methods = ["get", "put", "post", "delete", "options", "head", "patch"] as const;
  const operations = methods
    .filter((method) => value[method] !== undefined)
    .map((method) => [method, operationMessage(value[method] as Json)] as const);
  return { ...Object.fromEntries(operations), parameters: parameterMessages(value.parameters) };
}

function operationMessage(value: Json): Infer<typeof operation> {
  return {
    tags: texts(value.tags),
    description: String(value.description),
    operationId: String(value.operationId),
    produces: texts(value.produces),
    consumes: texts(value.consumes),
    parameters: parameterMessages(value.parameters),
    responses: { responseCode: entries(value.responses).map(([name, r]) => ({ name, value: responseMessage(r) })) },
    schemes: texts(value.schemes),
    vendorExtension: extensions(value),
  };
}

function responseMessage(value: Json): Infer<typeof responseValue> {
  return {
    response: {
      description: String(value.description),
      ...(value.schema === undefined ? {} : { schema: { schema: schemaMessage(value.schema as Json) } }),
    },
  };
}

function parameterMessages(value: unknown): readonly Infer<typeof parametersItem>[] {
  return ((value ?? []) as readonly Json[]).map((json) => ({ parameter: parameterMessage(json) }));
}

function parameterMessage(json: Json): Infer<typeof parameter> {
  const common = { name: String(json.name), in: String(json.in) };
  if (common.in === "body") {
    const schema = schemaMessage(json.schema as Json);
    return { bodyParameter: { ...common, required: json.required === true, schema } };
  }
  const typed = { ...common, description: String(json.description ?? ""), type: String(json.type), uniqueItems: true };
  return common.in === "path"
    ? { nonBodyParameter: { pathParameter: { ...typed, required: true } } }
    : { nonBodyParameter: { queryParameter: typed } };
}
