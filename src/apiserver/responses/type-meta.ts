/** TypeMeta: kind and apiVersion, with the group alias of the request, which precede the cached bytes of an object. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { encodeJson } from "../../schema/json/encode.ts";
import { toUnpooledBuffer } from "../../std/memory/unpooled-buffer.ts";

export interface TypeMeta {
  readonly kind: string;
  readonly apiVersion: string;
}

export function typeMetaOf(kind: Kind, group: string): TypeMeta {
  return { kind: kind.kind, apiVersion: formatApiVersion(group, kind.version) };
}

/** Above it all are dropped: definitions that come and go must not leave theirs. */
const PREFIXES_MAX = 1024;

const prefixes = new Map<string, Buffer>();

/** `{"kind":"Pod","apiVersion":"v1",`: one buffer for all responses of a kind. */
export function typeMetaPrefix({ kind, apiVersion }: TypeMeta): Buffer {
  const key = `${apiVersion}/${kind}`;
  let head = prefixes.get(key);
  if (head === undefined) {
    head = toUnpooledBuffer(Buffer.from(`${JSON.stringify({ kind, apiVersion }).slice(0, -1)},`));
    if (prefixes.size >= PREFIXES_MAX) prefixes.clear();
    prefixes.set(key, head);
  }
  return head;
}

/** Encodes an object that is not cached, such as the result of a write. */
export function encodeObject<T extends ApiObject>(kind: Kind<T>, object: T): Buffer {
  return encodeJson(kind.schema, object, { omitTypeMeta: true });
}
