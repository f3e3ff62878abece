/**
 * Generates OpenAPI schemas, which kubectl uses for `explain`, validation and patches. One component per object schema,
 * named as in Kubernetes (`io.k8s.api.core.v1.Pod`).
 */

import type { Field, ListSchema, MapSchema, ObjectSchema, Schema, Union } from "../schema.ts";
import { schemaOf } from "../schema.ts";
import type { JsonSchemaProps } from "../structural/json-schema-props.ts";
import { customResourceSchema, type ResourceMembers } from "./custom-resource.ts";
import type { OpenApiSchema, OpenApiVersion } from "./schema-object.ts";

const SPECIAL_NAMES = {
  time: "meta/v1.Time",
  microTime: "meta/v1.MicroTime",
  duration: "meta/v1.Duration",
  quantity: "resource.Quantity",
  intOrString: "intstr.IntOrString",
} as const;

const RAW_NAMES = {
  fieldsV1: "meta/v1.FieldsV1",
  rawExtension: "runtime.RawExtension",
  json: "apiextensions/v1.JSON",
} as const;

/** Packages that are not under `io.k8s.api`, by the prefix of their names. */
const ROOTS: Readonly<Record<string, string>> = {
  "meta/": "io.k8s.apimachinery.pkg.apis",
  "apiextensions/": "io.k8s.apiextensions-apiserver.pkg.apis",
  "apiregistration/": "io.k8s.kube-aggregator.pkg.apis",
  "metrics/": "io.k8s.metrics.pkg.apis",
  "intstr.": "io.k8s.apimachinery.pkg.util",
  "resource.": "io.k8s.apimachinery.pkg.api",
  "runtime.": "io.k8s.apimachinery.pkg",
  "version.": "io.k8s.apimachinery.pkg",
};

/** `core/v1.Pod` → `io.k8s.api.core.v1.Pod`; `example.com/v1.Widget`, of a definition, → `com.example.v1.Widget`. */
export function openApiName(schemaName: string): string {
  const [group = "", rest] = schemaName.split("/");
  if (rest !== undefined && group.includes(".")) return `${group.split(".").reverse().join(".")}.${rest}`;
  const start = /^\w+[./]/.exec(schemaName)?.[0] ?? "";
  return `${ROOTS[start] ?? "io.k8s.api"}.${schemaName.replaceAll("/", ".")}`;
}

/** Properties of components that schemas do not contain. */
export interface OpenApiContext {
  /** Extensions of the component, such as `x-kubernetes-group-version-kind`. */
  markers?(schema: ObjectSchema): OpenApiSchema | undefined;
  /** Descriptions by member name; that of the component itself has the empty name. */
  descriptions?(schemaName: string): Readonly<Record<string, string>> | undefined;
  /** The schema in the definition of a custom resource. */
  structural?(schema: ObjectSchema): JsonSchemaProps | undefined;
  /** The schema of `metadata` of custom resources. */
  readonly objectMeta?: ObjectSchema;
  /** Whether the values of string enums are published; they are when absent. */
  readonly hasEnums?: boolean | undefined;
}

/** Collects the components of the added schemas and of all schemas they refer to. */
export class OpenApiComponents {
  readonly #version: OpenApiVersion;
  readonly #context: OpenApiContext;
  readonly #components = new Map<string, OpenApiSchema>();

  constructor(version: OpenApiVersion, context: OpenApiContext = {}) {
    this.#version = version;
    this.#context = context;
  }

  /** Components by name, in alphabetical order. */
  all(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Adds `schema` as a component; returns a reference to it. */
  add(schema: ObjectSchema): OpenApiSchema {
    const name = openApiName(schema.name);
    if (!this.#components.has(name)) {
      this.#components.set(name, {});
      const structural = this.#context.structural?.(schema);
      this.#components.set(name, structural === undefined ? this.#object(schema) : this.#custom(schema, structural));
    }
    return this.#reference(name);
  }

  /** Adds the list type of a kind; its items have no list extensions. */
  addList(schema: ObjectSchema, list: { readonly name: string; readonly meta: ObjectSchema }): OpenApiSchema {
    const name = openApiName(list.name);
    if (this.#components.has(name)) return this.#reference(name);
    const custom = schema.unstructured === true;
    const about = this.#context.descriptions?.(list.name) ?? {};
    const common = this.#context.descriptions?.(LIST) ?? {};
    const property = (member: string, content: OpenApiSchema) => ({
      ...withDescription(about[member] ?? common[member]),
      ...content,
    });
    this.#components.set(name, {
      ...withDescription(about[""] ?? common[""]),
      type: "object",
      required: ["items"],
      properties: {
        apiVersion: property("apiVersion", { type: "string" }),
        items: property("items", {
          type: "array",
          items: custom ? this.add(schema) : this.#withDefault(this.add(schema), {}),
        }),
        kind: property("kind", { type: "string" }),
        metadata: property("metadata", this.#withDefault(this.add(list.meta), custom ? undefined : {})),
      },
      ...this.#context.markers?.({ type: "object", name: list.name, fields: {}, syntax: "proto2" }),
    });
    return this.#reference(name);
  }

  /** Adds a component that has no schema. */
  addPlain(name: string, schema: OpenApiSchema): OpenApiSchema {
    this.#components.set(name, schema);
    return this.#reference(name);
  }

  #reference(name: string): OpenApiSchema {
    return { $ref: `#/${this.#version === 2 ? "definitions" : "components/schemas"}/${name}` };
  }

  /** Custom resources have one component, without those of their parts. */
  #custom(schema: ObjectSchema, structural: JsonSchemaProps): OpenApiSchema {
    const published = customResourceSchema(structural, this.#version, this.#resourceMembers());
    return { ...published, ...this.#context.markers?.(schema) };
  }

  #resourceMembers(): ResourceMembers {
    const { objectMeta } = this.#context;
    const about = this.#context.descriptions?.(LIST) ?? {};
    return {
      apiVersion: { ...withDescription(about.apiVersion), type: "string" },
      kind: { ...withDescription(about.kind), type: "string" },
      metadata: {
        ...withDescription(this.#context.descriptions?.("")?.metadata),
        ...(objectMeta === undefined ? { type: "object" } : this.#withDefault(this.add(objectMeta), undefined)),
      },
    };
  }

  #object(schema: ObjectSchema): OpenApiSchema {
    const properties: Record<string, OpenApiSchema> = {};
    const required: string[] = [];
    this.#members(schema, properties, required);
    return {
      ...withDescription(schema.description ?? this.#context.descriptions?.(schema.name)?.[""]),
      type: "object",
      ...(required.length === 0 ? {} : { required }),
      ...(Object.keys(properties).length === 0 ? {} : { properties }),
      ...mapMarker(schema),
      ...(schema.unions === undefined ? {} : { "x-kubernetes-unions": schema.unions.map(unionMarker) }),
      ...this.#context.markers?.(schema),
    };
  }

  #members(schema: ObjectSchema, properties: Record<string, OpenApiSchema>, required: string[]): void {
    const about = this.#context.descriptions?.(schema.name) ?? {};
    for (const [name, field] of Object.entries(schema.fields)) {
      const value = schemaOf(field);
      if (field.inline === true && value.type === "object") {
        this.#members(value, properties, required);
        continue;
      }
      properties[name] = this.#property(value, field, field.description ?? about[name]);
      if (field.presence === "required" || field.requiredInOpenApi === true) required.push(name);
    }
  }

  #property(value: Schema, field: Field, description: string | undefined): OpenApiSchema {
    return {
      ...withDescription(description),
      ...this.#withDefault(this.#schema(value), field.default ?? zeroOf(value, field)),
      ...(value.type === "list" ? listMarkers(value) : {}),
      ...(value.type === "map" ? mapMarker(value) : {}),
      ...(field.granular === true ? { "x-kubernetes-map-type": "granular" } : {}),
      ...(field.patchStrategy === undefined ? {} : { "x-kubernetes-patch-strategy": field.patchStrategy }),
      ...(field.patchMergeKey === undefined ? {} : { "x-kubernetes-patch-merge-key": field.patchMergeKey }),
    };
  }

  /** A reference allows no other member, so version 3 wraps it in `allOf`. Version 2 has no defaults. */
  #withDefault(schema: OpenApiSchema, value: unknown): OpenApiSchema {
    if (this.#version === 2) return schema;
    const bare = "$ref" in schema ? { allOf: [schema] } : schema;
    return value === undefined ? bare : { ...bare, default: value };
  }

  #schema(schema: Schema): OpenApiSchema {
    switch (schema.type) {
      case "string":
        if (schema.values === undefined || this.#context.hasEnums === false) return { type: "string" };
        return { type: "string", enum: [...schema.values].sort() };
      case "enum":
        return { type: "string", enum: Object.keys(schema.numbers) };
      case "integer":
        return { type: "integer", format: schema.width };
      case "number":
        return { type: "number", format: schema.width };
      case "boolean":
        return { type: "boolean" };
      case "bytes":
        return { type: "string", format: "byte" };
      case "special":
        return this.#addScalarComponent(SPECIAL_NAMES[schema.format], specialSchema(schema.format, this.#version));
      case "raw":
        return this.#addScalarComponent(RAW_NAMES[schema.format], schema.format === "json" ? {} : { type: "object" });
      case "object":
        return this.add(schema);
      case "list":
        return { type: "array", items: this.#element(schema.items) };
      case "map":
        return { type: "object", additionalProperties: this.#element(schema.values) };
      case "either":
        return this.#addScalarComponent(schema.name, {});
      default:
        return schema satisfies never;
    }
  }

  #element(schema: Schema): OpenApiSchema {
    const element = this.#schema(schema);
    const value = goZero(schema);
    return value === undefined ? element : this.#withDefault(element, value);
  }

  /** Adds a type that Kubernetes publishes as a component although it is a scalar in JSON. */
  #addScalarComponent(schemaName: string, schema: OpenApiSchema): OpenApiSchema {
    const name = openApiName(schemaName);
    if (!this.#components.has(name)) {
      this.#components.set(name, { ...withDescription(this.#context.descriptions?.(schemaName)?.[""]), ...schema });
    }
    return this.#reference(name);
  }
}

/** The type whose descriptions apply to all list types. */
const LIST = "meta/v1.List";

function withDescription(description: string | undefined): OpenApiSchema {
  return description === undefined ? {} : { description };
}

/** Go's zero value, which Kubernetes publishes as the default of structs and of fields that JSON always contains. */
function zeroOf(schema: Schema, field: Field): unknown {
  if (field.presence === "pointer" || field.nilable === true) return undefined;
  const always = field.presence === "required" || field.emitEmpty === true;
  return always || schema.type === "object" ? goZero(schema) : undefined;
}

function goZero(schema: Schema): unknown {
  switch (schema.type) {
    case "string":
    case "enum":
      return "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "object":
      return {};
    default:
      return undefined;
  }
}

/** `x-kubernetes-unions`, with the Go names of the members, as Kubernetes publishes them. */
function unionMarker({ discriminator, members }: Union): OpenApiSchema {
  const fields = members.map((name) => [name, name.charAt(0).toUpperCase() + name.slice(1)] as const);
  return { discriminator, "fields-to-discriminateBy": Object.fromEntries(fields) };
}

function mapMarker({ atomic }: MapSchema | ObjectSchema): OpenApiSchema {
  return atomic === true ? { "x-kubernetes-map-type": "atomic" } : {};
}

function listMarkers(list: ListSchema): OpenApiSchema {
  return {
    ...(list.mapKeys === undefined ? {} : { "x-kubernetes-list-map-keys": list.mapKeys }),
    "x-kubernetes-list-type": list.listType,
  };
}

function specialSchema(format: keyof typeof SPECIAL_NAMES, version: OpenApiVersion): OpenApiSchema {
  switch (format) {
    case "time":
    case "microTime":
      return { type: "string", format: "date-time" };
    case "duration":
      return { type: "string" };
    case "quantity":
      return version === 2 ? { type: "string" } : { oneOf: [{ type: "string" }, { type: "number" }] };
    case "intOrString":
      return version === 2
        ? { type: "string", format: "int-or-string" }
        : { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] };
    default:
      return format satisfies never;
  }
}
