/** CEL types. Types derived from a schema have bounds of the size of their values. */

export type Type = SimpleType | TextType | ListType | MapType | ObjectType | OpaqueType | TypeType | ParameterType;

/** Bounds of the size of values, for cost estimates. They are not part of the type's identity. */
export interface Bounds {
  /** The maximum number of characters, bytes, items or entries. */
  readonly maxElements?: number;
  /** The schema keyword that would bound the value; `maxElements` then follows from the size of requests. */
  readonly unbounded?: "maxItems" | "maxLength" | "maxProperties";
  /** The minimum size in JSON, in bytes. */
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
  /** Bounds of a value that the expression selects by its name; unknown when absent. */
  readonly memberSize?: Type;
}

/** An object with declared fields. Object types are equal only if identical. */
export interface ObjectType extends Bounds {
  readonly kind: "object";
  readonly name: string;
  /** By the name in expressions, which can be escaped (`__dash__`). Lazy, since schemas can be recursive. */
  readonly field: (name: string) => Type | undefined;
  readonly fieldNames: () => readonly string[];
}

/** A type of a library: `kubernetes.Quantity`, `optional_type(int)`. */
export interface OpaqueType extends Bounds {
  readonly kind: "opaque";
  readonly name: string;
  readonly parameters: readonly Type[];
}

/** The type of a type value: `type(1)` has the type `type(int)`. */
export interface TypeType extends Bounds {
  readonly kind: "type";
  readonly of?: Type;
}

/** A type parameter in the signature of a function. */
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
/** The type of nodes with an error. Assignable to every type, so that an error is reported once. */
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

/** An object type with these fields. */
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

/** Formats a type for messages: `list(int)`, `map(string, dyn)`, `optional_type(string)`. */
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
