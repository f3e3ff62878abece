/**
 * Publishes the structural schema of a CustomResourceDefinition as an OpenAPI schema. Version 3 has all keywords of the
 * definition. Version 2 has neither junctors, defaults nor `nullable`, and omits what kubectl before 1.27 misreads:
 * types and members of nullable values and of values with unknown members.
 */

import type { JsonSchemaProps } from "../structural/json-schema-props.ts";
import { deepEqual } from "../value/equal.ts";
import { setMember } from "../value/plain-object.ts";
import type { OpenApiSchema, OpenApiVersion } from "./schema-object.ts";

/** The schemas of `apiVersion`, `kind` and `metadata`, which a definition cannot replace. */
export type ResourceMembers = Readonly<Record<"apiVersion" | "kind" | "metadata", OpenApiSchema>>;

/** The schema of a whole resource. */
export function customResourceSchema(
  props: JsonSchemaProps,
  version: OpenApiVersion,
  members: ResourceMembers,
): OpenApiSchema {
  // kubectl would reject all members that the properties do not list.
  if (version === 2 && preservesUnknown(props)) return { type: "object" };
  const schema = new Publisher(version, members).schema(props);
  return { ...schema, properties: { ...(schema.properties as object | undefined), ...members } };
}

const valueKeywords = [
  "format",
  "title",
  "maximum",
  "minimum",
  "maxLength",
  "minLength",
  "pattern",
  "maxItems",
  "minItems",
  "multipleOf",
  "maxProperties",
  "minProperties",
  "x-kubernetes-list-type",
  "x-kubernetes-map-type",
] as const;
/** Keywords that are published only when they are true. */
const flags = [
  "exclusiveMaximum",
  "exclusiveMinimum",
  "uniqueItems",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
] as const;
/** Keywords that are published only when they are not empty. */
const lists = ["enum", "x-kubernetes-list-map-keys", "x-kubernetes-validations"] as const;
const junctors = ["allOf", "anyOf", "oneOf"] as const;

class Publisher {
  readonly #version: OpenApiVersion;
  readonly #members: ResourceMembers;

  constructor(version: OpenApiVersion, members: ResourceMembers) {
    this.#version = version;
    this.#members = members;
  }

  schema(definition: JsonSchemaProps): OpenApiSchema {
    const props = this.#version === 2 ? withoutVersion3(definition) : withIntOrString(definition);
    const schema = this.#plain(props);
    if (props["x-kubernetes-embedded-resource"] !== true || (this.#version === 2 && preservesUnknown(props))) {
      return schema;
    }
    const required = new Set([...(props.required ?? []), "kind", "apiVersion"]);
    const properties = { ...(schema.properties as object | undefined), ...this.#members };
    return { ...schema, required: [...required], properties };
  }

  #plain(props: JsonSchemaProps): OpenApiSchema {
    const { description, type, required = [], items, properties, additionalProperties } = props;
    const result: Record<string, unknown> = {};
    if (description) result.description = description;
    if (type) result.type = type;
    if (required.length > 0) result.required = required;
    for (const name of valueKeywords) if (props[name] !== undefined && props[name] !== "") result[name] = props[name];
    for (const name of flags) if (props[name] === true) result[name] = true;
    for (const name of lists) if ((props[name] ?? []).length > 0) result[name] = props[name];
    if (props.nullable === true) result.nullable = true;
    if (props.default !== undefined && props.default !== null) result.default = props.default;
    for (const name of junctors) {
      if (props[name] !== undefined) result[name] = props[name].map((part) => this.#plain(part));
    }
    if (props.not !== undefined) result.not = this.#plain(props.not);
    if (items !== undefined && !Array.isArray(items)) result.items = this.schema(items as JsonSchemaProps);
    if (properties !== undefined && Object.keys(properties).length > 0)
      result.properties = this.#properties(properties);
    if (additionalProperties !== undefined) {
      result.additionalProperties =
        typeof additionalProperties === "boolean" ? additionalProperties : this.schema(additionalProperties);
    }
    return result;
  }

  #properties(properties: Readonly<Record<string, JsonSchemaProps>>): OpenApiSchema {
    const result: Record<string, unknown> = {};
    for (const [name, property] of Object.entries(properties)) setMember(result, name, this.schema(property));
    return result;
  }
}

/** Drops what version 2 lacks. A null for a required member would fail, so members that may be null are optional. */
function withoutVersion3(definition: JsonSchemaProps): JsonSchemaProps {
  const { allOf: _, anyOf: __, oneOf: ___, not: ____, default: _____, nullable, ...props } = definition;
  const untyped = nullable === true || preservesUnknown(props);
  const kept: JsonSchemaProps = untyped ? { ...props, items: undefined, properties: undefined } : props;
  const isUntypedArray = kept.type === "array" && kept.items === undefined;
  const isUntyped = nullable === true || isUntypedArray || (preservesUnknown(kept) && kept.type === "object");
  return { ...kept, type: isUntyped ? undefined : kept.type, required: requiredMembers(kept) };
}

function requiredMembers({ required, properties = {}, additionalProperties }: JsonSchemaProps) {
  if (typeof additionalProperties === "object" && additionalProperties.nullable === true) return undefined;
  return required?.filter((name) => !(Object.hasOwn(properties, name) && properties[name]?.nullable === true));
}

const integerOrString: readonly JsonSchemaProps[] = [{ type: "integer" }, { type: "string" }];

/** Adds the types of an int-or-string, which readers that do not support the extension validate. */
function withIntOrString(props: JsonSchemaProps): JsonSchemaProps {
  const { anyOf, allOf = [] } = props;
  const hasTypes = [anyOf, allOf[0]?.anyOf].some((types) => deepEqual(types, integerOrString));
  if (props["x-kubernetes-int-or-string"] !== true || hasTypes) return props;
  return anyOf === undefined
    ? { ...props, anyOf: integerOrString }
    : { ...props, allOf: [{ anyOf: integerOrString }, ...allOf] };
}

function preservesUnknown(props: JsonSchemaProps): boolean {
  return props["x-kubernetes-preserve-unknown-fields"] === true;
}
