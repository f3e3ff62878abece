/**
 * Schemas describe values: their type, their JSON and protobuf encoding, and how lists merge. Everything else is
 * derived from them. A schema is plain readonly data; each operation on schemas is a function in a file of its own.
 */

import type { Rules } from "./validation/rules.ts";

declare const inferred: unique symbol;

/** Carries the TypeScript type of the values that a schema describes; has no value at run time. */
export interface Describes<T> {
  readonly [inferred]?: T;
}

/** The TypeScript type of the values that `S` describes. */
export type Infer<S> = S extends { readonly [inferred]?: infer T } ? NonNullable<T> : never;

export type Schema =
  | StringSchema
  | IntegerSchema
  | NumberSchema
  | BooleanSchema
  | BytesSchema
  | SpecialSchema
  | RawSchema
  | EnumSchema
  | ObjectSchema
  | MapSchema
  | ListSchema
  | EitherSchema;

/** Properties that schemas of every type have. */
export interface SchemaBase {
  readonly rules?: Rules;
  /** The name of the Go type in decoding errors, where the type has one: `v1.Protocol`. */
  readonly goType?: string;
  /** Null is a value. In other schemas null means absent. */
  readonly nullable?: boolean;
  /**
   * Part of a custom resource: decoding keeps values of another type, validation rejects them. JSON has its members in
   * alphabetical order; there is no protobuf encoding.
   */
  readonly unstructured?: true;
  /** Replaces null in an unstructured list or map whose items are not nullable. */
  readonly nullDefault?: unknown;
}

export interface StringSchema extends Describes<string>, SchemaBase {
  readonly type: "string";
  /** The enum that Kubernetes publishes for the field. */
  readonly values?: readonly string[];
  /** The kind's own validation checks the value, or nothing does, as for most status fields. */
  readonly validatedByKind?: true;
}

export interface IntegerSchema extends Describes<number | bigint>, SchemaBase {
  readonly type: "integer";
  readonly width: "int32" | "int64" | "uint32" | "uint64";
  /** `bigint` where values exceed 2^53 (times in nanoseconds, lease IDs); `number` in every Kubernetes kind. */
  readonly as: "number" | "bigint";
}

export interface NumberSchema extends Describes<number>, SchemaBase {
  readonly type: "number";
  readonly width: "double" | "float";
}

export interface BooleanSchema extends Describes<boolean>, SchemaBase {
  readonly type: "boolean";
}

/** Bytes: base64 text as in JSON, or a `Uint8Array` (messages that only protobuf encodes). */
export interface BytesSchema extends Describes<string | Uint8Array>, SchemaBase {
  readonly type: "bytes";
  readonly as: "base64" | "binary";
}

/**
 * Scalars whose JSON and protobuf encodings differ. In memory they have their JSON representation: RFC 3339 text,
 * quantity text, `30s`, a number or a string.
 */
export interface SpecialSchema extends Describes<unknown>, SchemaBase {
  readonly type: "special";
  readonly format: "time" | "microTime" | "duration" | "quantity" | "intOrString";
  /** Decoding rounds quantities up to thousandths. */
  readonly milli?: true;
}

/** Any JSON value, kept unchanged (RawExtension, FieldsV1, JSON). */
export interface RawSchema extends Describes<unknown>, SchemaBase {
  readonly type: "raw";
  readonly format: "fieldsV1" | "rawExtension" | "json";
}

/** A protobuf enum: text in memory, a number on the wire. Unknown numbers become decimal text. */
export interface EnumSchema extends Describes<string>, SchemaBase {
  readonly type: "enum";
  readonly name: string;
  readonly numbers: Readonly<Record<string, number>>;
}

export interface ObjectSchema extends Describes<unknown>, SchemaBase {
  readonly type: "object";
  /** `core/v1.PodSpec`: Go package and type name. */
  readonly name: string;
  /** In the order of the JSON encoding. Keyed by JSON name; for `inline` fields by the name of the embedded struct. */
  readonly fields: Readonly<Record<string, Field>>;
  /** `proto2` always writes non-pointer scalars and messages, as Kubernetes' own encoder does; `proto3` omits zeros. */
  readonly syntax: "proto2" | "proto3";
  /** Shown by `kubectl explain`. */
  readonly description?: string;
  /** Server-side apply and strategic merge patch treat the object as one value. */
  readonly atomic?: boolean;
  /** Discriminated unions: published in OpenAPI documents, not enforced here. */
  readonly unions?: readonly Union[];
  /** Decoding keeps unknown members. */
  readonly preserveUnknown?: true;
  /** A whole resource inside another: has the members `apiVersion`, `kind` and `metadata` in addition to `fields`. */
  readonly embeddedResource?: true;
}

export interface Union {
  readonly discriminator: string;
  readonly members: readonly string[];
}

export interface MapSchema extends Describes<unknown>, SchemaBase {
  readonly type: "map";
  readonly values: Schema;
  readonly atomic?: boolean;
}

export interface ListSchema extends Describes<unknown>, SchemaBase {
  readonly type: "list";
  readonly items: Schema;
  readonly listType: "atomic" | "set" | "map";
  /** For `listType: "map"`: the fields that identify an item. */
  readonly mapKeys?: readonly string[];
}

/**
 * A value of one of several types, which JSON distinguishes by the type itself (apiextensions'
 * `JSONSchemaPropsOrBool`). In protobuf a message with a field for each type.
 */
export interface EitherSchema extends Describes<unknown>, SchemaBase {
  readonly type: "either";
  readonly name: string;
  /** The type that Go names when a value has another type and there is no list variant. */
  readonly expected: string;
  /** The protobuf number of the boolean, which is true when the value is an object. */
  readonly boolean?: number;
  readonly object: EitherVariant<ObjectSchema>;
  readonly list?: EitherVariant<ListSchema>;
}

export interface EitherVariant<S extends Schema> {
  readonly number: number;
  readonly schema: () => S;
}

/**
 * A field of an object.
 * - `required`: the API requires it, and JSON always contains it.
 * - `optional`: omitted from JSON when empty; an embedded message that is not a pointer is written as `{}`, as in Go.
 * - `pointer`: absent and zero are different values.
 */
export interface Field<S extends Schema = Schema, P extends Presence = Presence> {
  readonly schema: S | (() => S);
  /** Protobuf field number; 0 when the field is not part of the protobuf encoding. */
  readonly number: number;
  readonly presence: P;
  readonly default?: unknown;
  /** Shown by `kubectl explain`. */
  readonly description?: string;
  /** Members appear in the parent's JSON; in protobuf it is a nested message (when `number` is not 0). */
  readonly inline?: boolean;
  /** JSON contains the empty value although the field is optional (Go without `omitempty`). */
  readonly emitEmpty?: boolean;
  readonly nullable?: boolean;
  /** Decoding keeps an empty list or map, which errors show. Responses and the store omit it. */
  readonly keepEmpty?: boolean;
  /** A required field that is a pointer in Go: when absent it is nil and not zero. */
  readonly nilable?: boolean;
  /** OpenAPI documents list it as required although JSON omits it when empty. */
  readonly requiredInOpenApi?: boolean;
  /** Merged member by member even if its type is atomic. */
  readonly granular?: boolean;
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
  readonly featureGate?: string;
  /** The name of the protobuf oneof or Kubernetes union that the field belongs to. */
  readonly oneOf?: string;
}

export type Presence = "required" | "optional" | "pointer";

/** The schema of a field; resolves the lazy references of recursive types. */
export function schemaOf(field: Field): Schema {
  return typeof field.schema === "function" ? field.schema() : field.schema;
}
