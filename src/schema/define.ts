/**
 * Builders for the schemas of kinds. Each call returns plain `Schema` data whose TypeScript type is inferred:
 *
 *     export const containerPort = object("core/v1.ContainerPort", {
 *       containerPort: required(3, int32),
 *       protocol: optional(4, string, { default: "TCP" }),
 *     });
 *     export type ContainerPort = Infer<typeof containerPort>;
 */
import type {
  BooleanSchema,
  BytesSchema,
  Describes,
  EnumSchema,
  Field,
  Infer,
  IntegerSchema,
  ListSchema,
  MapSchema,
  NumberSchema,
  ObjectSchema,
  Presence,
  RawSchema,
  Schema,
  SpecialSchema,
  StringSchema,
} from "./schema.ts";

type Fields = Readonly<Record<string, Field>>;
type Flatten<T> = { readonly [K in keyof T]: T[K] };
type InlineKeys<F extends Fields> = {
  [K in keyof F]: F[K] extends { readonly inline: true } ? K : never;
}[keyof F];
type RequiredKeys<F extends Fields> = {
  [K in keyof F]: F[K] extends { readonly nilable: true } ? never : F[K]["presence"] extends "required" ? K : never;
}[keyof F];
type ValueOf<F> = F extends Field<infer S> ? Infer<S> : never;
type Intersect<U> = (U extends unknown ? (u: U) => void : never) extends (i: infer I) => void ? I : never;
type InlineMembers<F extends Fields> = [InlineKeys<F>] extends [never]
  ? unknown
  : Intersect<{ [K in InlineKeys<F>]: ValueOf<F[K]> }[InlineKeys<F>]>;

/** The TypeScript properties: required fields present, all others optional, inline fields flattened. */
type Members<F extends Fields> = Flatten<
  { readonly [K in Exclude<RequiredKeys<F>, InlineKeys<F>>]: ValueOf<F[K]> } & {
    readonly [K in Exclude<keyof F, RequiredKeys<F> | InlineKeys<F>>]?: ValueOf<F[K]> | undefined;
  } & InlineMembers<F>
>;

export const string: StringSchema = { type: "string" };
export const boolean: BooleanSchema = { type: "boolean" };
export const int32: IntegerSchema & Describes<number> = { type: "integer", width: "int32", as: "number" };
export const int64: IntegerSchema & Describes<number> = { type: "integer", width: "int64", as: "number" };
export const uint32: IntegerSchema & Describes<number> = { type: "integer", width: "uint32", as: "number" };
export const bigInt64: IntegerSchema & Describes<bigint> = { type: "integer", width: "int64", as: "bigint" };
export const bigUint64: IntegerSchema & Describes<bigint> = { type: "integer", width: "uint64", as: "bigint" };
export const double: NumberSchema = { type: "number", width: "double" };
export const float: NumberSchema = { type: "number", width: "float" };
export const base64: BytesSchema & Describes<string> = { type: "bytes", as: "base64" };
export const binary: BytesSchema & Describes<Uint8Array> = { type: "bytes", as: "binary" };
export const time: SpecialSchema & Describes<string> = { type: "special", format: "time" };
export const microTime: SpecialSchema & Describes<string> = { type: "special", format: "microTime" };
export const duration: SpecialSchema & Describes<string> = { type: "special", format: "duration" };
export const quantity: SpecialSchema & Describes<string> = { type: "special", format: "quantity" };
/** The quantities in resource lists, which are rounded up to thousandths. */
export const milliQuantity: SpecialSchema & Describes<string> = { type: "special", format: "quantity", milli: true };
export const intOrString: SpecialSchema & Describes<number | string> = { type: "special", format: "intOrString" };
export const fieldsV1: RawSchema & Describes<Readonly<Record<string, unknown>>> = { type: "raw", format: "fieldsV1" };
export const rawExtension: RawSchema = { type: "raw", format: "rawExtension" };

/** A string enum; its TypeScript type is the union of the values. */
export function oneOf<const V extends readonly string[]>(...values: V): StringSchema & Describes<V[number]> {
  return { type: "string", values };
}

/** A string enum that OpenAPI documents publish and the kind's own validation checks. */
export function documentedEnum<const V extends readonly string[]>(...values: V): StringSchema & Describes<V[number]> {
  return { type: "string", values, validatedByKind: true };
}

/** Names the Go type of strings, lists or maps in decoding errors: `v1.Protocol`. */
export function named<S extends Schema>(goType: string, schema: S): S {
  return { ...schema, goType };
}

export function enumeration<const N extends Readonly<Record<string, number>>>(
  name: string,
  numbers: N,
): EnumSchema & Describes<Extract<keyof N, string>> {
  return { type: "enum", name, numbers };
}

/** A type of the Kubernetes API. */
export function object<const F extends Fields>(
  name: string,
  fields: F,
  options?: Pick<ObjectSchema, "atomic" | "description" | "unions">,
): ObjectSchema & Describes<Members<F>> {
  return { type: "object", name, fields, syntax: "proto2", ...options };
}

/** A message of a gRPC API in proto3 (CRI, etcd): every field is optional and zero values are omitted. */
export function message<const F extends Fields>(name: string, fields: F): ObjectSchema & Describes<Members<F>> {
  return { type: "object", name, fields, syntax: "proto3" };
}

export function list<S extends Schema>(items: S): ListSchema & Describes<readonly Infer<S>[]> {
  return { type: "list", items, listType: "atomic" };
}

export function listSet<S extends Schema>(items: S): ListSchema & Describes<readonly Infer<S>[]> {
  return { type: "list", items, listType: "set" };
}

export function listMap<S extends Schema>(
  items: S,
  ...mapKeys: readonly string[]
): ListSchema & Describes<readonly Infer<S>[]> {
  return { type: "list", items, listType: "map", mapKeys };
}

export function map<S extends Schema>(
  values: S,
  options?: Pick<MapSchema, "atomic">,
): MapSchema & Describes<Readonly<Record<string, S extends ListSchema ? Infer<S> | null : Infer<S>>>> {
  return { type: "map", values, ...options };
}

type FieldOptions = Omit<Field, "schema" | "number" | "presence" | "inline" | "nilable">;

export function required<S extends Schema>(
  number: number,
  schema: S | (() => S),
  options?: FieldOptions,
): Field<S, "required"> {
  return { schema, number, presence: "required", ...options };
}

/** A required field that is a pointer in Go, so that validation can distinguish absent from zero. */
export function requiredPointer<S extends Schema>(
  number: number,
  schema: S | (() => S),
  options?: FieldOptions,
): Field<S, "required"> & { readonly nilable: true } {
  return { schema, number, presence: "required", nilable: true, ...options };
}

export function optional<S extends Schema>(
  number: number,
  schema: S | (() => S),
  options?: FieldOptions,
): Field<S, "optional"> {
  return { schema, number, presence: "optional", ...options };
}

export function pointer<S extends Schema>(
  number: number,
  schema: S | (() => S),
  options?: FieldOptions,
): Field<S, "pointer"> {
  return { schema, number, presence: "pointer", ...options };
}

/** An embedded struct: its members appear in the parent's JSON. */
export function inline<S extends ObjectSchema>(
  number: number,
  schema: S,
): Field<S, Presence> & { readonly inline: true } {
  return { schema, number, presence: "optional", inline: true };
}
