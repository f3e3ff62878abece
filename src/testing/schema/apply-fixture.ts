/** For tests of server-side apply: schemas in structured-merge-diff's format, and sequences of applies and updates. */

import { canonicalize, type FieldSet, noFields } from "../../schema/apply/fieldpath/field-set.ts";
import { formatPath } from "../../schema/apply/fieldpath/path-element.ts";
import { apply, ConflictError, updateManagers, type VersionedSet, type Versions } from "../../schema/apply/managers.ts";
import { shapeOf } from "../../schema/apply/shape.ts";
import { int32, list, listMap, listSet, map, object, pointer, rawExtension, string } from "../../schema/define.ts";
import type { Field, ListSchema, Schema } from "../../schema/schema.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { runSteps } from "../../std/async/steps.ts";

interface TypeDef {
  readonly name?: string;
  readonly namedType?: string;
  readonly elementRelationship?: string;
  readonly scalar?: string;
  readonly list?: { readonly elementType: TypeDef; readonly elementRelationship?: string; readonly keys?: string[] };
  readonly map?: {
    readonly fields?: readonly { readonly name: string; readonly type: TypeDef; readonly default?: unknown }[];
    readonly elementType?: TypeDef;
    readonly elementRelationship?: string;
  };
}

/** Returns the types of a schema in structured-merge-diff's YAML format by name. */
export function schemaTypes(yaml: string): (name: string) => Schema {
  const { types } = parseYaml(yaml)[0]!.value as { readonly types: readonly TypeDef[] };
  const byName = new Map(types.map((type) => [type.name!, type]));
  const schemas = new Map<string, Schema>();
  const named = (name: string, relationship?: string): Schema => {
    const key = `${name} ${relationship ?? ""}`;
    let schema = schemas.get(key);
    if (schema === undefined) {
      const type = byName.get(name);
      if (type === undefined) throw new Error(`unknown type ${name}`);
      schema = schemaOfType(type, relationship, typeOf);
      schemas.set(key, schema);
    }
    return schema;
  };
  const typeOf = (type: TypeDef): Schema =>
    type.namedType === undefined
      ? schemaOfType(type, undefined, typeOf)
      : named(type.namedType, type.elementRelationship);
  return (name) => named(name);
}

function schemaOfType(type: TypeDef, override: string | undefined, typeOf: (type: TypeDef) => Schema): Schema {
  const { list, map, scalar } = type;
  if (list !== undefined && map !== undefined) {
    return map.elementRelationship === "atomic" ? { type: "raw", format: "json" } : anything;
  }
  if (list !== undefined) {
    const relationship = override ?? list.elementRelationship;
    const listType = relationship !== "associative" ? "atomic" : list.keys === undefined ? "set" : "map";
    const schema = {
      type: "list",
      listType,
      ...(list.keys === undefined ? {} : { mapKeys: list.keys }),
    } as unknown as ListSchema;
    return Object.defineProperty(schema, "items", { get: () => typeOf(list.elementType) });
  }
  if (map !== undefined) {
    const atomic = (override ?? map.elementRelationship) === "atomic";
    if (map.fields === undefined) {
      const values = map.elementType;
      const schema = { type: "map", atomic } as Schema;
      return Object.defineProperty(schema, "values", { get: () => (values === undefined ? anything : typeOf(values)) });
    }
    const fields = map.fields.map(({ name, type, default: value }): [string, Field] => [
      name,
      {
        schema: () => typeOf(type),
        number: 0,
        presence: "pointer",
        ...(value === undefined ? {} : { default: value }),
      },
    ]);
    const preserves = map.elementType === undefined ? {} : { preserveUnknown: true as const };
    return {
      type: "object",
      name: type.name ?? "",
      fields: Object.fromEntries(fields),
      syntax: "proto2",
      atomic,
      ...preserves,
    };
  }
  switch (scalar) {
    case "numeric":
      return { type: "number", width: "double" };
    case "boolean":
      return { type: "boolean" };
    case "string":
      return { type: "string" };
    default:
      return { type: "special", format: "intOrString" };
  }
}

/** A value without a schema. */
export const anything: Schema = { ...rawExtension, unstructured: true };

const text = pointer(0, string);

/** A member of every type. */
export const example = object("test.Example", {
  text,
  count: pointer(0, int32),
  map: pointer(0, map(string)),
  atomicMap: pointer(0, map(string, { atomic: true })),
  set: pointer(0, listSet(string)),
  atomicList: pointer(0, list(string)),
  list: pointer(
    0,
    listMap(
      object("test.Item", { name: text, kind: pointer(0, string, { default: "K" }), value: text }),
      "name",
      "kind",
    ),
  ),
  object: pointer(0, object("test.Inner", { text })),
  anything: pointer(0, anything),
});

/** Parses one YAML document. */
export function yaml(text: string): unknown {
  return parseYaml(text)[0]!.value;
}

/** An object that several managers write to, in any number of identical versions. */
export class ManagedObject {
  value: unknown = {};
  managers: ReadonlyMap<string, VersionedSet> = new Map();
  readonly #versions: Versions;

  constructor(schema: Schema, served: readonly string[] = ["v1"], filter: Versions["filter"] = (_, fields) => fields) {
    const shape = shapeOf(schema);
    this.#versions = {
      shapeOf: (version) => (served.includes(version) ? shape : undefined),
      convert: (value) => value ?? {},
      filter,
      stripMeta: (fields) => fields,
    };
  }

  /** Returns the conflicts as `manager: path`; empty when the configuration was applied. */
  apply(name: string, configuration: unknown, { force = false, version = "v1" } = {}): readonly string[] {
    const change = this.#context(name, version, true);
    try {
      const { value, managers } = runSteps(apply(change, configuration, force));
      if (value !== undefined) this.value = value;
      this.managers = managers;
      return [];
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      return error.conflicts.map(({ manager, path }) => `${manager}: ${formatPath(path)}`);
    }
  }

  update(name: string, value: unknown, { version = "v1" } = {}): void {
    this.managers = runSteps(updateManagers(this.#context(name, version, false), value));
    this.value = value;
  }

  /** The fields of each manager, in Kubernetes' order. */
  owned(): Readonly<Record<string, FieldSet>> {
    return Object.fromEntries([...this.managers].map(([name, { fields }]) => [name, canonicalize(fields)]));
  }

  #context(name: string, version: string, applied: boolean) {
    return {
      versions: this.#versions,
      live: this.value,
      managers: this.managers,
      name,
      manager: { version, applied, fields: noFields },
      withFields: (managed: VersionedSet, fields: FieldSet): VersionedSet => ({ ...managed, fields }),
      isLong: true,
    };
  }
}
