/**
 * What server-side apply sees of a schema: where a value is one field and where its members and items are fields of
 * their own, and how items are told apart. Made once for each schema, member by member as they are met.
 */
import { membersOf } from "../members.ts";
import type { ListSchema, ObjectSchema, Schema } from "../schema.ts";
import { isPlainObject } from "../value/plain-object.ts";
import { compareElements, fieldElement, keyElement, valueElement } from "./path-element.ts";

export type Shape = ScalarShape | AtomicShape | MembersShape | ItemsShape | DeducedShape;

export interface ScalarShape {
  readonly form: "scalar";
  /** `any` are values of every form that are one field whatever they hold. */
  readonly type: "string" | "numeric" | "boolean" | "untyped" | "any";
}

/** A map or list that is one field. */
export interface AtomicShape {
  readonly form: "atomic";
  readonly container: "map" | "list";
  /** What its content has to look like. */
  readonly content: MembersShape | ItemsShape;
}

export interface MembersShape {
  readonly form: "members";
  /** Members that the schema names. */
  readonly declared: ReadonlyMap<string, Shape>;
  /** The same in alphabetical order, with the elements that stand for them. */
  readonly ordered: readonly DeclaredMember[];
  /** What all other members are; undefined where there may be none. */
  readonly rest: Shape | undefined;
}

export interface DeclaredMember {
  readonly name: string;
  readonly element: string;
  readonly shape: Shape;
}

export interface ItemsShape {
  readonly form: "items";
  readonly items: Shape;
  /** Undefined where items have no identity. Throws an `IdentityError` for one that lacks what it is told by. */
  readonly elementOf: ((item: unknown) => string) | undefined;
}

/** A value of which no schema tells: maps have members, lists and scalars are one field. */
export interface DeducedShape {
  readonly form: "deduced";
}

export class IdentityError extends Error {
  override readonly name = "IdentityError";
}

export const scalar: ScalarShape = { form: "scalar", type: "untyped" };
const anything: ScalarShape = { form: "scalar", type: "any" };
export const deduced: DeducedShape = { form: "deduced" };
export const deducedMembers: MembersShape = { form: "members", declared: new Map(), ordered: [], rest: deduced };
const deducedItems: ItemsShape = { form: "items", items: deduced, elementOf: undefined };
const deducedList: AtomicShape = { form: "atomic", container: "list", content: deducedItems };

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
      return schema.atomic === true ? { form: "atomic", container: "map", content } : content;
    }
    case "map": {
      const form = { form: "members" as const, declared: nothingDeclared, ordered: [] };
      const content = defineLazily(form, "rest", () => shapeOf(schema.values));
      return schema.atomic === true ? { form: "atomic", container: "map", content } : content;
    }
    case "list": {
      const content = list(schema);
      return schema.listType === "atomic" ? { form: "atomic", container: "list", content } : content;
    }
    case "raw":
      return schema.format === "json" && schema.unstructured !== true ? anything : deduced;
    case "either":
      return anything;
    case "integer":
    case "number":
      return { form: "scalar", type: "numeric" };
    case "boolean":
      return { form: "scalar", type: "boolean" };
    case "special":
      return schema.format === "quantity" || schema.format === "intOrString"
        ? scalar
        : { form: "scalar", type: "string" };
    case "string":
    case "bytes":
    case "enum":
      return { form: "scalar", type: "string" };
    default:
      return schema satisfies never;
  }
}

/** Schemas refer to themselves: what a shape holds is made when it is first looked at. */
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
  const named = defineLazily({ form: "members" as const, rest }, "declared", () => {
    const declared = new Map<string, Shape>();
    if (schema.embeddedResource === true) {
      declared.set("apiVersion", { form: "scalar", type: "string" });
      declared.set("kind", { form: "scalar", type: "string" });
      declared.set("metadata", deduced);
    }
    for (const { name, field, schema: member } of membersOf(schema)) {
      const shape = shapeOf(member);
      declared.set(name, field.granular === true && shape.form === "atomic" ? shape.content : shape);
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
  const form = { form: "items" as const, elementOf: elementOf(schema) };
  return defineLazily(form, "items", () => shapeOf(schema.items));
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

/** What a shape makes of a value: one that no schema tells of is told by the value itself. */
export function resolveShape(shape: Shape, value: unknown): Exclude<Shape, DeducedShape> {
  if (shape.form !== "deduced") return shape;
  if (Array.isArray(value)) return deducedList;
  return isPlainObject(value) ? deducedMembers : scalar;
}

/** What stands below an element of a set. */
export function shapeBelow(shape: Shape | undefined, element: string): Shape | undefined {
  if (shape === undefined) return undefined;
  const inner = shape.form === "atomic" ? shape.content : shape;
  if (inner.form === "deduced") return element.startsWith("f:") ? deduced : undefined;
  if (inner.form === "members") {
    return element.startsWith("f:") ? (inner.declared.get(element.slice(2)) ?? inner.rest) : undefined;
  }
  return inner.form === "items" && element.startsWith("k:") ? inner.items : undefined;
}
