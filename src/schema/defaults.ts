/** Sets absent fields to the defaults of the schema. */
import { membersOf } from "./members.ts";
import type { Field, ObjectSchema, Schema } from "./schema.ts";
import { countValues } from "./value/check-values.ts";
import { storedValuesMax, TooManyValuesError } from "./value/limits.ts";
import { isPlainObject, setMember } from "./value/plain-object.ts";

/** Values that defaults have added in the current call of `applyDefaults`: those of a definition may multiply. */
let added = 0;
const sizes = new WeakMap<object, number>();

/**
 * Returns `value` itself when nothing changes; otherwise copies the objects that change. Throws a `TooManyValuesError`
 * when the defaults add more values than an object may have.
 */
export function applyDefaults<T>(schema: Schema, value: T): T {
  added = 0;
  return defaulterOf(schema).apply(value) as T;
}

/**
 * As `applyDefaults` for an object that is stored: returns it without further defaults when they add too many values,
 * as defaults can that were added to a definition later. It must stay readable.
 */
export function applyStoredDefaults<T>(schema: Schema, value: T): T {
  try {
    return applyDefaults(schema, value);
  } catch (error) {
    if (error instanceof TooManyValuesError) return value;
    throw error;
  }
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

interface Slot {
  readonly name: string;
  readonly field: Field;
  readonly defaulter: Defaulter;
}

function slotsOf(schema: ObjectSchema): readonly Slot[] {
  return (
    membersOf(schema)
      .filter((member) => member.field.default !== undefined || hasDefaults(member.schema, new Set()))
      // An empty optional string equals an absent one; setting it would only use memory.
      .filter((member) => !(member.field.default === "" && member.field.presence === "optional"))
      .map(({ name, field, schema: target }) => ({ name, field, defaulter: defaulterOf(target) }))
  );
}

function objectDefaulter(schema: ObjectSchema): Defaulter {
  let slots: readonly Slot[] | undefined;
  // Members of custom resources can have any type and names such as `constructor`.
  const loose = schema.unstructured === true;
  return {
    apply(value) {
      if (loose && !isPlainObject(value)) return value;
      slots ??= slotsOf(schema);
      const members = value as Readonly<Record<string, unknown>>;
      let changed: Record<string, unknown> | undefined;
      for (const { name, field, defaulter } of slots) {
        const old = loose && !Object.hasOwn(members, name) ? undefined : members[name];
        const next = old === undefined ? freshDefault(field.default, defaulter) : defaulter.apply(old);
        if (next !== old) {
          changed ??= { ...members };
          setMember(changed, name, next);
        }
      }
      return changed ?? value;
    },
  };
}

/** Copies a default and applies the defaults of its own fields. */
function freshDefault(value: unknown, defaulter: Defaulter): unknown {
  if (value === undefined) return undefined;
  added += typeof value === "object" && value !== null ? sizeOf(value) : 1;
  if (added > storedValuesMax) throw new TooManyValuesError(storedValuesMax);
  return typeof value === "object" ? defaulter.apply(structuredClone(value)) : value;
}

function sizeOf(value: object): number {
  let size = sizes.get(value);
  if (size === undefined) {
    size = countValues(value, storedValuesMax);
    sizes.set(value, size);
  }
  return size;
}

function listDefaulter(items: Schema): Defaulter {
  const defaulter = defaulterOf(items);
  return {
    apply(value) {
      if (!Array.isArray(value)) return value;
      const list: readonly unknown[] = value;
      let changed: unknown[] | undefined;
      for (let index = 0; index < list.length; index++) {
        const next = defaulter.apply(list[index]);
        if (next === list[index]) continue;
        changed ??= [...list];
        changed[index] = next;
      }
      return changed ?? value;
    },
  };
}

function mapDefaulter(values: Schema): Defaulter {
  return {
    apply(value) {
      if (!isPlainObject(value)) return value;
      const map = value;
      const next = Object.entries(map).map(([name, member]) => [name, defaulterOf(values).apply(member)] as const);
      return next.some(([name, member]) => member !== map[name]) ? Object.fromEntries(next) : value;
    },
  };
}
