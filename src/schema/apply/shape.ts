/**
 * The view that server-side apply has of a schema: which values are one field, which have members or items that are
 * fields themselves, and how items are identified. Built once per schema, lazily member by member.
 */
import { membersOf } from "../members.ts";
import type { ListSchema, ObjectSchema, Schema } from "../schema.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { compareElements, fieldElement, keyElement, valueElement } from "./fieldpath/path-element.ts";

export type Shape = ScalarShape | AtomicShape | MembersShape | ItemsShape | DeducedShape;

export interface ScalarShape {
  readonly kind: "scalar";
  /** `any`: a value of any JSON type that is one field. */
  readonly type: "string" | "numeric" | "boolean" | "untyped" | "any";
}

/** A map or list that is one field. */
export interface AtomicShape {
  readonly kind: "atomic";
  readonly container: "map" | "list";
  /** The shape that validation requires of its content. */
  readonly content: MembersShape | ItemsShape;
}

export interface MembersShape {
  readonly kind: "members";
  /** Members that the schema declares. */
  readonly declared: ReadonlyMap<string, Shape>;
  /** The declared members in alphabetical order, with their path elements. */
  readonly ordered: readonly DeclaredMember[];
  /** The shape of all other members; undefined when others are not allowed. */
  readonly rest: Shape | undefined;
}

export interface DeclaredMember {
  readonly name: string;
  readonly element: string;
  readonly shape: Shape;
}

export interface ItemsShape {
  readonly kind: "items";
  readonly items: Shape;
  /** Undefined when items have no identity. Throws an `IdentityError` for an item without its keys. */
  readonly elementOf: ((item: unknown) => string) | undefined;
}

/** A value without a schema: members of maps are fields, lists and scalars are one field. */
export interface DeducedShape {
  readonly kind: "deduced";
}

export class IdentityError extends Error {
  override readonly name = "IdentityError";
}

export const scalar: ScalarShape = { kind: "scalar", type: "untyped" };
const anything: ScalarShape = { kind: "scalar", type: "any" };
export const deduced: DeducedShape = { kind: "deduced" };
export const deducedMembers: MembersShape = { kind: "members", declared: new Map(), ordered: [], rest: deduced };
const deducedItems: ItemsShape = { kind: "items", items: deduced, elementOf: undefined };
const deducedList: AtomicShape = { kind: "atomic", container: "list", content: deducedItems };

const nothingDeclared: ReadonlyMap<string, Shape> = new Map();

const shapes = new WeakMap<Schema, Shape>();

export function shapeOf(schema: Schema): Shape {
  let shape = shapes.get(schema);
  if (shape === undefined) {
    shape = buildShape(schema);
    shapes.set(schema, shape);
  }
  return shape;
}

function buildShape(schema: Schema): Shape {
  switch (schema.type) {
    case "object": {
      const content = object(schema);
      return schema.atomic === true ? { kind: "atomic", container: "map", content } : content;
    }
    case "map": {
      const base = { kind: "members" as const, declared: nothingDeclared, ordered: [] };
      const content = defineLazily(base, "rest", () => shapeOf(schema.values));
      return schema.atomic === true ? { kind: "atomic", container: "map", content } : content;
    }
    case "list": {
      const content = list(schema);
      return schema.listType === "atomic" ? { kind: "atomic", container: "list", content } : content;
    }
    case "raw":
      return schema.format !== "fieldsV1" && schema.unstructured !== true ? anything : deduced;
    case "either":
      return anything;
    case "integer":
    case "number":
      return { kind: "scalar", type: "numeric" };
    case "boolean":
      return { kind: "scalar", type: "boolean" };
    case "special":
      return schema.format === "quantity" || schema.format === "intOrString"
        ? scalar
        : { kind: "scalar", type: "string" };
    case "string":
    case "bytes":
    case "enum":
      return { kind: "scalar", type: "string" };
    default:
      return schema satisfies never;
  }
}

/** Defines a property that is computed at the first access, since schemas can be recursive. */
function defineLazily<S extends object, K extends string, V>(
  shape: S,
  name: K,
  of: () => V,
): S & { readonly [P in K]: V } {
  let made: V | undefined;
  Object.defineProperty(shape, name, {
    enumerable: true,
    get: () => (made ??= of()),
  });
  return shape as S & { readonly [P in K]: V };
}

function object(schema: ObjectSchema): MembersShape {
  const rest = schema.preserveUnknown === true ? deduced : undefined;
  const named = defineLazily({ kind: "members" as const, rest }, "declared", () => {
    const declared = new Map<string, Shape>();
    if (schema.embeddedResource === true) {
      declared.set("apiVersion", { kind: "scalar", type: "string" });
      declared.set("kind", { kind: "scalar", type: "string" });
      declared.set("metadata", deduced);
    }
    for (const { name, field, schema: member } of membersOf(schema)) {
      const shape = shapeOf(member);
      declared.set(name, field.granular === true && shape.kind === "atomic" ? shape.content : shape);
    }
    return declared;
  });
  return defineLazily(named, "ordered", () =>
    [...named.declared]
      .map(([name, shape]) => ({ name, element: fieldElement(name), shape }))
      .sort((a, b) => compareElements(a.element, b.element)),
  );
}

function list(schema: ListSchema): ItemsShape {
  const base = { kind: "items" as const, elementOf: elementOf(schema) };
  return defineLazily(base, "items", () => shapeOf(schema.items));
}

function elementOf(schema: ListSchema): ItemsShape["elementOf"] {
  switch (schema.listType) {
    case "atomic":
      return undefined;
    case "set":
      return setElement;
    default:
      return keyedElementOf(schema);
  }
}

function setElement(item: unknown): string {
  if (item === null || item === undefined) {
    throw new IdentityError("associative list without keys has an element that's an explicit null");
  }
  if (Array.isArray(item)) throw new IdentityError("not supported: associative list with lists as elements");
  if (isPlainObject(item)) {
    throw new IdentityError("associative list without keys has an element that's a map type");
  }
  return valueElement(item);
}

function keyedElementOf({ items, mapKeys = [] }: ListSchema): (item: unknown) => string {
  const names = [...mapKeys].sort();
  let defaults: ReadonlyMap<string, unknown> | undefined;
  return (item) => {
    if (item === null || item === undefined) {
      throw new IdentityError("associative list with keys may not have a null element");
    }
    if (!isPlainObject(item)) throw new IdentityError("associative list with keys may not have non-map elements");
    if (names.length === 1 && typeof item[names[0]!] === "string") return keyElement([[names[0]!, item[names[0]!]]]);
    defaults ??= defaultsOf(items);
    const keys: [string, unknown][] = [];
    for (const name of names) {
      const value = item[name] === undefined ? defaults.get(name) : item[name];
      if (value === undefined) {
        const key = JSON.stringify(name);
        const why = `associative list with keys has an element that omits key field ${key}`;
        throw new IdentityError(`${why} (and doesn't have default value)`);
      }
      keys.push([name, value]);
    }
    return keyElement(keys);
  };
}

function defaultsOf(items: Schema): ReadonlyMap<string, unknown> {
  if (items.type !== "object") return new Map();
  return new Map(membersOf(items).map(({ name, field }) => [name, field.default] as const));
}

/** Replaces a deduced shape by one derived from the value. */
export function resolveShape(shape: Shape, value: unknown): Exclude<Shape, DeducedShape> {
  if (shape.kind !== "deduced") return shape;
  if (Array.isArray(value)) return deducedList;
  return isPlainObject(value) ? deducedMembers : scalar;
}

/** The shape of the value at a path element. */
export function shapeBelow(shape: Shape | undefined, element: string): Shape | undefined {
  if (shape === undefined) return undefined;
  const inner = shape.kind === "atomic" ? shape.content : shape;
  if (inner.kind === "deduced") return element.startsWith("f:") ? deduced : undefined;
  if (inner.kind === "members") {
    return element.startsWith("f:") ? (inner.declared.get(element.slice(2)) ?? inner.rest) : undefined;
  }
  return inner.kind === "items" && element.startsWith("k:") ? inner.items : undefined;
}
