/** The types of expressions. Types derived from a schema also say how large their values can become. */

export type Type = SimpleType | TextType | ListType | MapType | ObjectType | OpaqueType | TypeType | ParameterType;

/** What is known at load of the size of a value that is not yet there; only bounds, never part of the type itself. */
export interface Bounds {
  /** Characters of a string, bytes, items of a list, entries of a map: at most this many. */
  readonly maxElements?: number;
  /** `maxElements` follows from the size of requests only; this would bound it. */
  readonly unbounded?: "maxItems" | "maxLength" | "maxProperties";
  /** The fewest bytes a value takes in JSON. */
  readonly minSize?: number;
}

export interface SimpleType extends Bounds {
  readonly kind: "int" | "uint" | "double" | "bool" | "null" | "timestamp" | "duration" | "dyn" | "error";
}

export interface TextType extends Bounds {
  readonly kind: "string" | "bytes";
}

export interface ListType extends Bounds {
  readonly kind: "list";
  readonly element: Type;
}

export interface MapType extends Bounds {
  readonly kind: "map";
  readonly key: Type;
  readonly value: Type;
}

/** A value with known members. Two object types are the same when they are one. */
export interface ObjectType extends Bounds {
  readonly kind: "object";
  readonly name: string;
  /** By the name that an expression uses, which may be escaped (`__dash__`). Looked up lazily: schemas recurse. */
  readonly field: (name: string) => Type | undefined;
  readonly fieldNames: () => readonly string[];
}

/** A type of a library: `kubernetes.Quantity`, `optional_type(int)`. */
export interface OpaqueType extends Bounds {
  readonly kind: "opaque";
  readonly name: string;
  readonly parameters: readonly Type[];
}

/** The type of a type: `type(1)` is `type(int)`. */
export interface TypeType extends Bounds {
  readonly kind: "type";
  readonly of?: Type;
}

/** Stands for any one type within the signature of a function. */
export interface ParameterType extends Bounds {
  readonly kind: "parameter";
  readonly name: string;
}

export const intType: Type = { kind: "int" };
export const uintType: Type = { kind: "uint" };
export const doubleType: Type = { kind: "double" };
export const boolType: Type = { kind: "bool" };
export const nullType: Type = { kind: "null" };
export const stringType: Type = { kind: "string" };
export const bytesType: Type = { kind: "bytes" };
export const timestampType: Type = { kind: "timestamp" };
export const durationType: Type = { kind: "duration" };
export const dynType: Type = { kind: "dyn" };
/** Of an expression that has an error already: fits everywhere, so that one mistake is told once. */
export const errorType: Type = { kind: "error" };

export function listType(element: Type, bounds: Bounds = {}): ListType {
  return { kind: "list", element, ...bounds };
}

export function mapType(key: Type, value: Type, bounds: Bounds = {}): MapType {
  return { kind: "map", key, value, ...bounds };
}

export function opaqueType(name: string, ...parameters: readonly Type[]): OpaqueType {
  return { kind: "opaque", name, parameters };
}

export function optionalType(of: Type): OpaqueType {
  return opaqueType("optional_type", of);
}

export function typeType(of?: Type): TypeType {
  return of === undefined ? { kind: "type" } : { kind: "type", of };
}

export function parameterType(name: string): ParameterType {
  return { kind: "parameter", name };
}

/** An object type over a plain table of members. */
export function objectType(name: string, fields: Readonly<Record<string, Type>>, bounds: Bounds = {}): ObjectType {
  const members = new Map(Object.entries(fields));
  return {
    kind: "object",
    name,
    field: (member) => members.get(member),
    fieldNames: () => [...members.keys()],
    ...bounds,
  };
}

export function isOptional(type: Type): type is OpaqueType {
  return type.kind === "opaque" && type.name === "optional_type";
}

/** As messages write it: `list(int)`, `map(string, dyn)`, `optional_type(string)`. */
export function formatType(type: Type): string {
  switch (type.kind) {
    case "list":
      return `list(${formatType(type.element)})`;
    case "map":
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case "object":
      return type.name;
    case "opaque":
      return type.parameters.length === 0 ? type.name : `${type.name}(${type.parameters.map(formatType).join(", ")})`;
    case "type":
      return type.of === undefined ? "type" : `type(${formatType(type.of)})`;
    case "timestamp":
      return "timestamp";
    case "parameter":
      return type.name;
    case "error":
      return "!error!";
    default:
      return type.kind;
  }
}
