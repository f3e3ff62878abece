import type { ApiObject } from "../api/kind.ts";
import { conflict, isNotFound, notFound } from "../api/status.ts";
import { preconditionFailed } from "../storage/object-store.ts";
import { create } from "./create.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { checkName, setNamespace } from "./write/name-and-namespace.ts";
import { metadataOf } from "./write/object-metadata.ts";
import { pipeline } from "./write/pipeline.ts";
import type { WriteOptions } from "./write/request.ts";
import { requestedResourceVersion, resourceVersionRequired } from "./write/resource-version.ts";

export interface UpdateResult<T> {
  readonly object: T;
  readonly created: boolean;
}

/** Replaces the object. Writes nothing when nothing changes. */
export async function update<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  sent: T,
  options: WriteOptions<T> = {},
): Promise<UpdateResult<T>> {
  const { strategy } = registry.kind;
  const object = setNamespace({ registry, scope }, checkName(sent, name));
  const { uid } = metadataOf(object);
  const preconditions = uid ? { uid } : undefined;
  const request = { registry, scope, name, options: { ...options, preconditions } };
  const resourceVersion = requestedResourceVersion(object);
  const attempt = pipeline(request, object);
  const replace: UpdateFunction<T> = (previous, store) => {
    if (resourceVersion === undefined && strategy.allowUnconditionalUpdate === false) {
      throw resourceVersionRequired(request);
    }
    return attempt(previous, store);
  };
  try {
    return { object: await guaranteedUpdate(request, replace), created: false };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // With a uid precondition a missing object is a conflict, not a 404.
    if (uid) throw conflict(registry.subject(scope, name), uidDiffers(registry.key(scope, name), uid));
    if (options.subresourceStrategy !== undefined || strategy.allowCreateOnUpdate !== true) throw error;
    if (resourceVersion) throw notFound(registry.subject(scope, name));
    return { object: await create(registry, scope, object, options), created: true };
  }
}

function uidDiffers(key: string, uid: string): string {
  return preconditionFailed(key, `UID in precondition: ${uid}, UID in object meta: `);
}
