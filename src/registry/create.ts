import type { ApiObject } from "../api/kind.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { setNamespace } from "./write/name-and-namespace.ts";
import { metadataOf, withMetadata } from "./write/object-metadata.ts";
import { pipeline } from "./write/pipeline.ts";
import type { WriteOptions, WriteRequest } from "./write/request.ts";
import { storeNew } from "./write/store.ts";
import { clearSystemMetadata } from "./write/system-metadata.ts";

/** Resolves with the object as stored. */
export async function create<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  options: WriteOptions<T> = {},
): Promise<T> {
  return await createObject({ registry, scope, name: "", options }, sent);
}

/** Creates the object that server-side apply produced; its managedFields are set already. */
export async function createFromApply<T extends ApiObject>(request: WriteRequest<T>, applied: T): Promise<T> {
  const { resourceVersion: _, ...metadata } = metadataOf(applied);
  return await createObject(request, withMetadata(applied, metadata));
}

function createObject<T extends ApiObject>(request: WriteRequest<T>, sent: T): Promise<T> {
  const object = setNamespace(request, clearSystemMetadata(sent));
  return pipeline(request, object)(undefined, (admitted, prepare) => storeNew(request, admitted, prepare));
}
