/** A resource in other versions, and conversion of its objects to them. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion, type Scheme } from "../../api/scheme.ts";
import { decode } from "../../schema/decode/decode.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { stringify } from "../../schema/json/encode.ts";
import { parseJson } from "../../schema/json/parse.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { AdmissionAttributes } from "../chain/attributes.ts";

export interface EquivalentResource {
  /** Group (as the alias in use), version and resource name. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** The kind of the objects: `Scale` for `deployments/scale`. */
  readonly objects: { readonly group: string; readonly version: string; readonly kind: string };
  readonly schema: ObjectSchema;
  /** The kind whose strategy applies to the objects; undefined for objects of another kind, such as `Scale`. */
  readonly kind: Kind | undefined;
}

/** The resource as the request names it. */
export function requestedResource(attributes: AdmissionAttributes): EquivalentResource {
  const { version, plural } = attributes.kind;
  const { schema, ...objects } = attributes.objectKind;
  return { group: attributes.group, version, plural, objects, schema, kind: requestedKind(attributes) };
}

/** The kind whose strategy applies to the objects of the request. */
export function requestedKind({ kind, objectKind }: AdmissionAttributes): Kind | undefined {
  return objectKind.kind === kind.kind && objectKind.version === kind.version ? kind : undefined;
}

/** The same resource in other versions and groups. */
export function equivalentResources(attributes: AdmissionAttributes, scheme: Scheme): readonly EquivalentResource[] {
  const { kind, subresource } = attributes;
  const requested = requestedResource(attributes);
  const has = (other: Kind): boolean =>
    subresource === "" || other.subresources.some(({ name }) => name === subresource);
  return scheme
    .kinds()
    .filter((other) => other !== kind && other.storageName === kind.storageName && has(other))
    .map((other) => {
      const { group, version, plural } = other;
      if (requested.kind === undefined) return { ...requested, group, version, plural };
      const objects = { group, version, kind: other.kind };
      return { group, version, plural, objects, schema: other.schema, kind: other };
    });
}

/** The resource under another alias of its group. */
export function withGroupAlias(resource: EquivalentResource, group: string): EquivalentResource {
  if (group === resource.group) return resource;
  const isSameGroup = resource.objects.group === resource.group;
  return { ...resource, group, objects: isSameGroup ? { ...resource.objects, group } : resource.objects };
}

/** The JSON of the object, with `apiVersion` and `kind`. */
export function encodeJson(
  { objects, schema }: EquivalentResource,
  object: ApiObject,
): Readonly<Record<string, unknown>> {
  const identity = { apiVersion: formatApiVersion(objects.group, objects.version), kind: objects.kind };
  const text = stringify(schema, { ...object, ...identity });
  return parseJson(Buffer.from(text)).value as Readonly<Record<string, unknown>>;
}

/** Decodes an object of the resource and applies defaults. Throws an `Error` if the JSON is invalid. */
export function decodeJson({ schema, kind }: EquivalentResource, json: unknown): ApiObject {
  const { value, errors } = decode(schema, json, { unknownFields: "drop" });
  const [error] = errors;
  if (error !== undefined) throw new Error(error.message);
  const { kind: _, apiVersion: __, ...object } = value as ApiObject;
  const defaulted = applyDefaults(schema, object as ApiObject);
  return kind?.strategy.setDefaults?.(defaulted) ?? defaulted;
}

/** Converts the object; returns it unchanged if both resources have the same kind and version. */
export async function convertObject(
  object: ApiObject,
  from: EquivalentResource,
  to: EquivalentResource,
  signal: AbortSignal,
): Promise<ApiObject> {
  if (from.kind === to.kind || from.kind === undefined || to.kind === undefined) return object;
  signal.throwIfAborted();
  const { converter } = from.kind;
  if (converter !== undefined) {
    const [json] = await converter.convert([encodeJson(from, object)], to.kind.version);
    return decodeJson(to, json);
  }
  const stored = from.kind.conversion?.toStorage(object) ?? object;
  return to.kind.conversion?.fromStorage(stored) ?? stored;
}
