/**
 * OpenAPI schemas read from a `Schema`: what `kubectl explain`, client-side validation and patch merging go by. One
 * component per object schema, named as Kubernetes names it (`io.k8s.api.core.v1.Pod`).
 */
import type { Field, ListSchema, ObjectSchema, Schema } from "./schema.ts";
import { schemaOf } from "./schema.ts";

/** An OpenAPI schema object as plain JSON. */
export type OpenApiSchema = Readonly<Record<string, unknown>>;

/**
 * Version 2 refers to `#/definitions/`; version 3 to `#/components/schemas/` and carries defaults beside references.
 */
export type OpenApiVersion = 2 | 3;

const SPECIAL_NAMES = {
  time: "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
  microTime: "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
  duration: "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
  quantity: "io.k8s.apimachinery.pkg.api.resource.Quantity",
  intOrString: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
} as const;

const RAW_NAMES = {
  fieldsV1: "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
  rawExtension: "io.k8s.apimachinery.pkg.runtime.RawExtension",
  json: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
} as const;

/** `core/v1.Pod` → `io.k8s.api.core.v1.Pod`. */
export function openApiName(schemaName: string): string {
  const dot = schemaName.lastIndexOf(".");
  const packageName = schemaName.slice(0, dot).replaceAll("/", ".");
  const root = packageName.startsWith("meta.") ? "io.k8s.apimachinery.pkg.apis" : "io.k8s.api";
  return `${root}.${packageName}.${schemaName.slice(dot + 1)}`;
}

/** Collects the components that the schemas read so far need, each once; recursive schemas end. */
export class OpenApiComponents {
  readonly #version: OpenApiVersion;
  readonly #components = new Map<string, OpenApiSchema>();

  constructor(version: OpenApiVersion) {
    this.#version = version;
  }

  /** Components by name, in alphabetical order. */
  all(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Adds `schema` as a component, with `extra` members such as its group, version and kind. */
  add(schema: ObjectSchema, extra?: OpenApiSchema): string {
    const name = openApiName(schema.name);
    if (!this.#components.has(name)) {
      this.#components.set(name, {});
      this.#components.set(name, this.#object(schema));
    }
    if (extra !== undefined) this.#components.set(name, { ...this.#components.get(name), ...extra });
    return name;
  }

  /** Adds a component that no `Schema` describes: a list of a kind. */
  addPlain(name: string, schema: OpenApiSchema): void {
    this.#components.set(name, schema);
  }

  reference(name: string): OpenApiSchema {
    return { $ref: `#/${this.#version === 2 ? "definitions" : "components/schemas"}/${name}` };
  }

  #object(schema: ObjectSchema): OpenApiSchema {
    const properties: Record<string, OpenApiSchema> = {};
    const required: string[] = [];
    this.#members(schema, properties, required);
    return {
      ...(schema.description === undefined ? {} : { description: schema.description }),
      type: "object",
      ...(required.length === 0 ? {} : { required }),
      properties,
      ...(schema.atomic === true ? { "x-kubernetes-map-type": "atomic" } : {}),
    };
  }

  #members(schema: ObjectSchema, properties: Record<string, OpenApiSchema>, required: string[]): void {
    for (const [name, field] of Object.entries(schema.fields)) {
      const value = schemaOf(field);
      if (field.inline === true && value.type === "object") {
        this.#members(value, properties, required);
        continue;
      }
      properties[name] = this.#property(value, field);
      if (field.presence === "required") required.push(name);
    }
  }

  #property(value: Schema, field: Field): OpenApiSchema {
    const wrapped = this.#wrapped(this.#schema(value), field);
    return {
      ...(field.description === undefined ? {} : { description: field.description }),
      ...wrapped,
      ...(value.type === "list" ? listMarkers(value) : {}),
      ...(value.type === "map" && value.atomic === true ? { "x-kubernetes-map-type": "atomic" } : {}),
      ...(field.patchStrategy === undefined ? {} : { "x-kubernetes-patch-strategy": field.patchStrategy }),
      ...(field.patchMergeKey === undefined ? {} : { "x-kubernetes-patch-merge-key": field.patchMergeKey }),
    };
  }

  /** Beside a bare reference no other member may stand, so version 3 wraps it in `allOf`. */
  #wrapped(schema: OpenApiSchema, field: Field): OpenApiSchema {
    const byDefault = field.default;
    if (this.#version === 2 || !("$ref" in schema)) {
      return byDefault === undefined ? schema : { ...schema, default: byDefault };
    }
    return { allOf: [schema], ...(byDefault === undefined ? {} : { default: byDefault }) };
  }

  #schema(schema: Schema): OpenApiSchema {
    switch (schema.type) {
      case "string":
        return schema.values === undefined ? { type: "string" } : { type: "string", enum: [...schema.values].sort() };
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
        return this.#shared(SPECIAL_NAMES[schema.format], specialSchema(schema.format, this.#version));
      case "raw":
        return this.#shared(RAW_NAMES[schema.format], schema.format === "json" ? {} : { type: "object" });
      case "object":
        return this.reference(this.add(schema));
      case "list":
        return { type: "array", items: this.#schema(schema.items) };
      case "map":
        return { type: "object", additionalProperties: this.#schema(schema.values) };
      default:
        return schema satisfies never;
    }
  }

  #shared(name: string, schema: OpenApiSchema): OpenApiSchema {
    if (!this.#components.has(name)) this.#components.set(name, schema);
    return this.reference(name);
  }
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
