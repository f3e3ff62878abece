/** Conversion of objects between the served versions, for managed fields. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import type { FieldSet } from "../../schema/apply/fieldpath/field-set.ts";
import { toJsonValue } from "../../schema/apply/json-value.ts";
import type { Versions } from "../../schema/apply/managers.ts";
import { type Shape, shapeOf } from "../../schema/apply/shape.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyStoredDefaults } from "../../schema/defaults.ts";
import type { Registry } from "../registry.ts";
import type { Conversions } from "./conversions.ts";
import { manageableFields, withoutSystemFields } from "./reset-fields.ts";

/** `subresource` is the one that the write goes through: it determines which fields the write can manage. */
export function objectVersions<T extends ApiObject>(
  registry: Registry<T>,
  subresource: string,
  conversions: Conversions | undefined,
): Versions {
  return new ObjectVersions(registry.kind, () => registry.versions(), subresource, conversions);
}

class ObjectVersions implements Versions {
  readonly #kind: Kind;
  readonly #others: () => readonly Kind[];
  readonly #subresource: string;
  readonly #conversions: Conversions | undefined;

  constructor(kind: Kind, others: () => readonly Kind[], subresource: string, conversions: Conversions | undefined) {
    this.#kind = kind;
    this.#others = others;
    this.#subresource = subresource;
    this.#conversions = conversions;
  }

  /** The version of the write is the usual one. */
  #kindOf(version: string): Kind | undefined {
    return nameOf(this.#kind) === version ? this.#kind : this.#others().find((kind) => nameOf(kind) === version);
  }

  shapeOf(version: string): Shape | undefined {
    const kind = this.#kindOf(version);
    return kind && shapeOf(kind.schema);
  }

  convert(value: unknown, from: string, to: string): unknown {
    if (from === to) return value ?? {};
    const source = this.#kindOf(from);
    const target = this.#kindOf(to);
    if (source === undefined || target === undefined) throw new Error(`Cannot convert from ${from} to ${to}`);
    if (this.#conversions !== undefined) {
      return toJsonValue(target.schema, this.#conversions.convert(value ?? {}, source, target));
    }
    const object = decode(source.schema, value ?? {}).value as ApiObject;
    const stored = source.conversion?.toStorage(object) ?? object;
    const converted = target.conversion?.fromStorage(stored) ?? stored;
    return toJsonValue(target.schema, applyStoredDefaults(target.schema, converted));
  }

  stripMeta(fields: FieldSet): FieldSet {
    return withoutSystemFields(fields);
  }

  filter(version: string, fields: FieldSet): FieldSet {
    const kind = this.#kindOf(version);
    return kind === undefined ? fields : manageableFields(kind, this.#subresource)(fields);
  }
}

function nameOf({ group, version }: Kind): string {
  return `${svcGroup(group)}/${version}`;
}
