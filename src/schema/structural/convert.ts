/** Converts the schema of a CustomResourceDefinition to a `Schema`. */

import type { Field, ListSchema, ObjectSchema, Schema, SchemaBase } from "../schema.ts";
import type { JsonType, Rules, ValidationRule } from "../validation/rules.ts";
import { setMember } from "../value/plain-object.ts";
import { itemsOf, type JsonSchemaProps, propertiesOf, propertyOf, valuesOf } from "./json-schema-props.ts";

export interface ConvertOptions {
  /** The name of the type: `example.com/v1.Widget`. The names of its parts add their paths. */
  readonly name: string;
  /** The schema of `metadata` at the root and in embedded resources. */
  readonly metadata: ObjectSchema;
}

/** Converts the schema of a whole resource. `props` must be structural. */
export function convertResource(props: JsonSchemaProps, options: ConvertOptions): ObjectSchema {
  // Stored objects need not contain these two: the server sets them.
  const required = (props.required ?? []).filter((name) => name !== "apiVersion" && name !== "kind");
  return convertObject({ ...props, required: required.length === 0 ? undefined : required }, options, {
    resource: true,
  });
}

/** Converts the schema of a part of a resource. */
export function convertPart(props: JsonSchemaProps, options: ConvertOptions): Schema {
  const common = commonKeywords(props);
  if (props["x-kubernetes-int-or-string"] === true) return { type: "special", format: "intOrString", ...common };
  switch (props.type) {
    case "string":
      return { type: "string", ...common };
    case "integer":
      return { type: "integer", width: "int64", as: "number", ...common };
    case "number":
      return { type: "number", width: "double", ...common };
    case "boolean":
      return { type: "boolean", ...common };
    case "array":
      return convertList(props, options, common);
    case "object":
      return convertMapOrObject(props, options, common);
    default:
      if (props.properties !== undefined) return convertMapOrObject(props, options, common);
      return { type: "raw", format: "json", ...common };
  }
}

function convertList(props: JsonSchemaProps, options: ConvertOptions, common: SchemaBase): ListSchema {
  const items = itemsOf(props);
  const listType = props["x-kubernetes-list-type"];
  const mapKeys = props["x-kubernetes-list-map-keys"];
  return {
    type: "list",
    items: items === undefined ? emptyObject : convertElement(items, { ...options, name: `${options.name}[]` }),
    listType: listType === "set" || listType === "map" ? listType : "atomic",
    ...(listType === "map" && mapKeys !== undefined ? { mapKeys } : {}),
    ...common,
  };
}

function convertMapOrObject(props: JsonSchemaProps, options: ConvertOptions, common: SchemaBase): Schema {
  const { additionalProperties } = props;
  const preserveUnknown = props["x-kubernetes-preserve-unknown-fields"] === true;
  if (additionalProperties === undefined || props.properties !== undefined || props["x-kubernetes-embedded-resource"]) {
    return convertObject(props, options, {});
  }
  const values = valuesOf(props);
  if (values === undefined && preserveUnknown) return convertObject(props, options, {});
  return {
    type: "map",
    values: values === undefined ? emptyObject : convertElement(values, { ...options, name: `${options.name}{}` }),
    ...(props["x-kubernetes-map-type"] === "atomic" ? { atomic: true } : {}),
    ...common,
  };
}

/** Any value; objects are pruned to `{}`. */
const emptyObject: ObjectSchema = { type: "object", name: "", fields: {}, syntax: "proto2", unstructured: true };

/** Items of lists and values of maps have a default for null, since they cannot be omitted. */
function convertElement(props: JsonSchemaProps, options: ConvertOptions): Schema {
  const schema = convertPart(props, options);
  return props.default === undefined ? schema : { ...schema, nullDefault: props.default };
}

function convertObject(
  props: JsonSchemaProps,
  options: ConvertOptions,
  { resource = props["x-kubernetes-embedded-resource"] === true }: { readonly resource?: boolean },
): ObjectSchema {
  const fields: Record<string, Field> = {};
  if (resource) Object.assign(fields, resourceFields(props, options));
  for (const [name, property] of propertiesOf(props)) {
    if (resource && Object.hasOwn(fields, name)) continue;
    setMember(fields, name, fieldOf(property, { ...options, name: `${options.name}.${name}` }));
  }
  const preserved = props["x-kubernetes-preserve-unknown-fields"] === true || props.additionalProperties === true;
  return {
    type: "object",
    name: options.name,
    fields,
    syntax: "proto2",
    ...(props.description === undefined ? {} : { description: props.description }),
    ...(props["x-kubernetes-map-type"] === "atomic" ? { atomic: true } : {}),
    ...(preserved ? { preserveUnknown: true } : {}),
    ...(props["x-kubernetes-embedded-resource"] === true ? { embeddedResource: true } : {}),
    ...commonKeywords(props),
  };
}

function fieldOf(property: JsonSchemaProps, options: ConvertOptions): Field {
  return {
    schema: convertPart(property, options),
    number: 0,
    presence: "pointer",
    ...(property.default === undefined ? {} : { default: property.default }),
    ...(property.description === undefined ? {} : { description: property.description }),
    ...(property.nullable === true ? { nullable: true } : {}),
  };
}

/** A definition can restrict these members but not change their types. */
function resourceFields(props: JsonSchemaProps, options: ConvertOptions): Readonly<Record<string, Field>> {
  const metadata = propertyOf(props, "metadata");
  const rules = metadata === undefined ? undefined : nestedRules(metadata);
  const typed = rules === undefined ? options.metadata : { ...options.metadata, rules };
  return {
    apiVersion: fieldOf({ ...propertyOf(props, "apiVersion"), type: "string" }, options),
    kind: fieldOf({ ...propertyOf(props, "kind"), type: "string" }, options),
    metadata: { schema: typed, number: 0, presence: "optional" },
  };
}

function commonKeywords(props: JsonSchemaProps): SchemaBase {
  const rules = { ...valueRules(props), ...closedRule(props), ...validationRules(props) };
  return {
    unstructured: true,
    ...(props.nullable === true ? { nullable: true } : {}),
    ...(Object.keys(rules).length === 0 ? {} : { rules }),
  };
}

function closedRule(props: JsonSchemaProps): Rules {
  return props.additionalProperties === false && props.properties === undefined ? { closed: true } : {};
}

function validationRules(props: JsonSchemaProps): Rules {
  const validations: readonly ValidationRule[] = props["x-kubernetes-validations"] ?? [];
  return validations.length === 0 ? {} : { validations };
}

const copiedKeywords = [
  "format",
  "minimum",
  "exclusiveMinimum",
  "maximum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "enum",
  "required",
] as const;

function valueRules(props: JsonSchemaProps): Rules {
  const rules: Record<string, unknown> = {};
  const types = typesOf(props);
  if (types.length > 0) rules.types = types;
  for (const name of copiedKeywords) if (props[name] !== undefined) rules[name] = props[name];
  for (const name of ["allOf", "anyOf", "oneOf"] as const) {
    if (props[name] !== undefined) rules[name] = props[name].map(nestedRules);
  }
  if (props.not !== undefined) rules.not = nestedRules(props.not);
  return rules;
}

function typesOf(props: JsonSchemaProps): readonly JsonType[] {
  if (props["x-kubernetes-int-or-string"] === true) return ["integer", "string"];
  return props.type === undefined || props.type === "" ? [] : [props.type as JsonType];
}

/** The rules inside a junctor, which include those of members and items. */
function nestedRules(props: JsonSchemaProps): Rules {
  const items = itemsOf(props);
  const properties: Record<string, unknown> = {};
  for (const [name, property] of propertiesOf(props)) setMember(properties, name, nestedRules(property));
  return {
    ...valueRules(props),
    ...(props.properties === undefined ? {} : { properties: properties as Readonly<Record<string, Rules>> }),
    ...(items === undefined ? {} : { items: nestedRules(items) }),
  };
}
