/** Fills in the defaults that stand at the fields of a schema. What needs no change is returned as it is. */
import { membersOf } from "./members.ts";
import type { ObjectSchema, Schema } from "./schema.ts";

/** Returns `value` itself when nothing was missing; otherwise copies of the objects that changed. */
export function applyDefaults<T>(schema: Schema, value: T): T {
  return defaulterOf(schema).apply(value) as T;
}

interface Defaulter {
  apply(value: unknown): unknown;
}

const identity: Defaulter = { apply: (value) => value };
const defaulters = new WeakMap<Schema, Defaulter>();

function defaulterOf(schema: Schema): Defaulter {
  let defaulter = defaulters.get(schema);
  if (defaulter === undefined) {
    defaulter = compile(schema);
    defaulters.set(schema, defaulter);
  }
  return defaulter;
}

function compile(schema: Schema): Defaulter {
  switch (schema.type) {
    case "object":
      return hasDefaults(schema, new Set()) ? objectDefaulter(schema) : identity;
    case "list":
      return hasDefaults(schema.items, new Set()) ? listDefaulter(schema.items) : identity;
    case "map":
      return hasDefaults(schema.values, new Set()) ? mapDefaulter(schema.values) : identity;
    default:
      return identity;
  }
}

function hasDefaults(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  switch (schema.type) {
    case "object":
      return membersOf(schema).some((member) => member.field.default !== undefined || hasDefaults(member.schema, seen));
    case "list":
      return hasDefaults(schema.items, seen);
    case "map":
      return hasDefaults(schema.values, seen);
    default:
      return false;
  }
}

function objectDefaulter(schema: ObjectSchema): Defaulter {
  const slots = membersOf(schema)
    .filter((member) => member.field.default !== undefined || hasDefaults(member.schema, new Set()))
    // A default that says what absence says anyway would only cost memory.
    .filter((member) => !(member.field.default === "" && member.field.presence === "optional"));
  return {
    apply(value) {
      const members = value as Readonly<Record<string, unknown>>;
      let changed: Record<string, unknown> | undefined;
      for (const { name, field, schema: target } of slots) {
        const old = members[name];
        const next = old === undefined ? structuredClone(field.default) : defaulterOf(target).apply(old);
        if (next !== old) {
          changed ??= { ...members };
          changed[name] = next;
        }
      }
      return changed ?? value;
    },
  };
}

function listDefaulter(items: Schema): Defaulter {
  return {
    apply(value) {
      const list = value as readonly unknown[];
      const next = list.map((item) => defaulterOf(items).apply(item));
      return next.some((item, place) => item !== list[place]) ? next : value;
    },
  };
}

function mapDefaulter(values: Schema): Defaulter {
  return {
    apply(value) {
      const map = value as Readonly<Record<string, unknown>>;
      const next = Object.entries(map).map(([name, member]) => [name, defaulterOf(values).apply(member)] as const);
      return next.some(([name, member]) => member !== map[name]) ? Object.fromEntries(next) : value;
    },
  };
}
