/** The versions in which an object can be shown to whoever asks for it in another one than it was sent in. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion, type Scheme } from "../../api/scheme.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { parseJson, stringify } from "../../schema/json/encode.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Place } from "../chain/plugin.ts";

export interface Form {
  /** The resource: its group as it is spelled, its version, its name. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** What the objects are: `Scale` for `deployments/scale`. */
  readonly objects: { readonly group: string; readonly version: string; readonly kind: string };
  readonly schema: ObjectSchema;
  /** Whose rules the objects follow; undefined for those that are no objects of the resource. */
  readonly kind: Kind | undefined;
}

/** That in which the request came. */
export function sentForm({ kind, group, objectKind }: Place): Form {
  const { version, plural } = kind;
  const own = objectKind.kind === kind.kind && objectKind.version === version;
  const { schema, ...objects } = objectKind;
  return { group, version, plural, objects, schema, kind: own ? kind : undefined };
}

/** The same resource in other versions and groups. */
export function otherForms(place: Place, scheme: Scheme): readonly Form[] {
  const { kind, subresource } = place;
  const sent = sentForm(place);
  const has = (other: Kind): boolean =>
    subresource === "" || other.subresources.some(({ name }) => name === subresource);
  return scheme
    .kinds()
    .filter((other) => other !== kind && other.storageName === kind.storageName && has(other))
    .map((other) => {
      const { group, version, plural } = other;
      if (sent.kind === undefined) return { ...sent, group, version, plural };
      const objects = { group, version, kind: other.kind };
      return { group, version, plural, objects, schema: other.schema, kind: other };
    });
}

/** As JSON has it, with `apiVersion` and `kind`. */
export function jsonIn({ objects, schema }: Form, object: ApiObject): Readonly<Record<string, unknown>> {
  const identity = { apiVersion: formatApiVersion(objects.group, objects.version), kind: objects.kind };
  const text = stringify(schema, { ...object, ...identity });
  return parseJson(Buffer.from(text)).value as Readonly<Record<string, unknown>>;
}

/** An object of the form from JSON, defaults filled in. Throws an `Error` for what is none. */
export function readIn({ schema, kind }: Form, json: unknown): ApiObject {
  const { value, errors } = decode(schema, json, { unknownFields: "drop" });
  const [error] = errors;
  if (error !== undefined) throw new Error(`json: cannot unmarshal ${error.path}: ${error.message}`);
  const { kind: _, apiVersion: __, ...object } = value as ApiObject;
  const filled = applyDefaults(schema, object as ApiObject);
  return kind?.strategy.setDefaults?.(filled) ?? filled;
}

/** The object in another form; itself where both are one. */
export async function converted(object: ApiObject, from: Form, to: Form, signal: AbortSignal): Promise<ApiObject> {
  if (from.kind === to.kind || from.kind === undefined || to.kind === undefined) return object;
  signal.throwIfAborted();
  const { converter } = from.kind;
  if (converter !== undefined) {
    const [json] = await converter.convert([jsonIn(from, object)], to.kind.version);
    return readIn(to, json);
  }
  const stored = from.kind.conversion?.toStored(object) ?? object;
  return to.kind.conversion?.fromStored(stored) ?? stored;
}
