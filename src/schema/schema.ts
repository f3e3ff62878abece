/**
 * The one description that every derivation reads: what a value may be, how it is spelled in JSON and in protobuf,
 * how lists merge. Plain readonly data; behaviour lives in the files named by their verb beside this one.
 */

import type { Rules } from "./validation/rules.ts";

declare const inferred: unique symbol;

/** Carries the TypeScript type of the values a schema describes; never present at run time. */
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

/** What every schema may say besides the form of its values. */
export interface SchemaBase {
  readonly rules?: Rules;
  /** Null is a value; elsewhere it says that there is none. */
  readonly nullable?: boolean;
  /**
   * Part of a custom resource: a value of another type is kept, and refused by validation. JSON has its members in
   * alphabetical order; there is no protobuf form.
   */
  readonly unstructured?: true;
  /** Within an unstructured list or map, what stands for a null that is no value. */
  readonly nullDefault?: unknown;
}

export interface StringSchema extends Describes<string>, SchemaBase {
  readonly type: "string";
  /** Closed set of values, where Kubernetes publishes one. */
  readonly values?: readonly string[];
  /** The kind itself judges the value, at a place or in words of its own; or, as of most states, nobody does. */
  readonly validatedByKind?: true;
}

export interface IntegerSchema extends Describes<number | bigint>, SchemaBase {
  readonly type: "integer";
  readonly width: "int32" | "int64" | "uint32" | "uint64";
  /** `bigint` where values exceed 2^53 (nanosecond times, lease ids); `number` in every Kubernetes kind. */
  readonly as: "number" | "bigint";
}

export interface NumberSchema extends Describes<number>, SchemaBase {
  readonly type: "number";
  readonly width: "double" | "float";
}

export interface BooleanSchema extends Describes<boolean>, SchemaBase {
  readonly type: "boolean";
}

/** Bytes: base64 text in JSON values, a `Uint8Array` when `as` says so (protobuf-only messages). */
export interface BytesSchema extends Describes<string | Uint8Array>, SchemaBase {
  readonly type: "bytes";
  readonly as: "base64" | "binary";
}

/**
 * Scalars whose JSON and protobuf forms differ (facts/types.json `encodings`): the value held in memory is the JSON
 * form — RFC 3339 text, quantity text, `30s`, a number or a string.
 */
export interface SpecialSchema extends Describes<unknown>, SchemaBase {
  readonly type: "special";
  readonly format: "time" | "microTime" | "duration" | "quantity" | "intOrString";
  /** Quantities are rounded up to thousandths when they are read. */
  readonly milli?: true;
}

/** Any JSON value, kept as it came (RawExtension, FieldsV1, JSON). */
export interface RawSchema extends Describes<unknown>, SchemaBase {
  readonly type: "raw";
  readonly format: "fieldsV1" | "rawExtension" | "json";
}

/** A protobuf enum: text in memory, a number on the wire. Unknown numbers become their decimal text. */
export interface EnumSchema extends Describes<string>, SchemaBase {
  readonly type: "enum";
  readonly name: string;
  readonly numbers: Readonly<Record<string, number>>;
}

export interface ObjectSchema extends Describes<unknown>, SchemaBase {
  readonly type: "object";
  /** `core/v1.PodSpec`: package and name as in facts/types.json. */
  readonly name: string;
  /** In the order that JSON is written. Keyed by JSON name; for `inline` fields by the name of the embedded struct. */
  readonly fields: Readonly<Record<string, Field>>;
  /** `proto2` always writes non-pointer scalars and messages, as Kubernetes' own encoder does; `proto3` omits zeros. */
  readonly syntax: "proto2" | "proto3";
  /** For people: what `kubectl explain` says of it. */
  readonly description?: string;
  /** Server-side apply and strategic merge treat the object as one value. */
  readonly atomic?: boolean;
  /** Members of which one counts, and the one that says which: published, but not enforced here. */
  readonly unions?: readonly Union[];
  /** Members that the schema does not know are kept. */
  readonly preserveUnknown?: true;
  /** A whole resource inside another: `apiVersion`, `kind` and `metadata` are members whatever `fields` says. */
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
 * A value of one of several forms, told apart in JSON by the form itself (apiextensions' `JSONSchemaPropsOrBool`). In
 * protobuf a message with a member for each form.
 */
export interface EitherSchema extends Describes<unknown>, SchemaBase {
  readonly type: "either";
  readonly name: string;
  /** What Go says of a value of another form, where there is no list to leave empty. */
  readonly expected: string;
  /** The number of a boolean member, which is true beside an object. */
  readonly boolean?: number;
  readonly object: EitherVariant<ObjectSchema>;
  readonly list?: EitherVariant<ListSchema>;
}

export interface EitherVariant<S extends Schema> {
  readonly number: number;
  readonly schema: () => S;
}

/**
 * How a member of an object behaves.
 * - `required`: the API demands it, and JSON always carries it.
 * - `optional`: left out of JSON when empty; an embedded message that is not a pointer still writes `{}`, as Go does.
 * - `pointer`: absent and zero are different values.
 */
export interface Field<S extends Schema = Schema, P extends Presence = Presence> {
  readonly schema: S | (() => S);
  /** Protobuf field number; 0 means the field has no protobuf form. */
  readonly number: number;
  readonly presence: P;
  readonly default?: unknown;
  /** For people: what `kubectl explain` says of it. */
  readonly description?: string;
  /** Members appear in the parent's JSON; in protobuf it is a nested message (when `number` is not 0). */
  readonly inline?: boolean;
  /** JSON writes the empty value although the field is optional (Go without `omitempty`). */
  readonly emitEmpty?: boolean;
  readonly nullable?: boolean;
  /** An empty list is told from an absent one, and refused. */
  readonly keepEmpty?: boolean;
  /** A required member that Go holds by a pointer: absent, it is nothing and not its zero. */
  readonly nilable?: boolean;
  /** Documents call it required although JSON leaves it out when it is empty. */
  readonly requiredInOpenApi?: boolean;
  /** Merged member by member, be its type atomic or not. */
  readonly granular?: boolean;
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
  readonly featureGate?: string;
  /** Members of a protobuf oneof or of a Kubernetes union share a name here. */
  readonly oneOf?: string;
}

export type Presence = "required" | "optional" | "pointer";

/** The schema of a field, resolving the laziness that recursive types need. */
export function schemaOf(field: Field): Schema {
  return typeof field.schema === "function" ? field.schema() : field.schema;
}
