import type { ApiObject, SubresourceStrategy } from "../api/kind.ts";
import { badRequest, conflict, notFound, StatusError } from "../api/status.ts";
import { preconditionFailed } from "../storage/object-store.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { type CreateOptions, create } from "./create.ts";
import { trackManagedFields, keepUnchangedTimes } from "./managed-fields/track-managed-fields.ts";
import type { Registry, Scope } from "./registry.ts";
import { revised } from "./write/pipeline.ts";
import { applyDefaults, setNamespace, metadataOf, resourceVersionRequired, dedupOwnerReferences, requestedResourceVersion } from "./write/prepare.ts";

export interface UpdateOptions<T extends ApiObject = ApiObject> extends CreateOptions {
  /** The part that a subresource may change; the whole object when absent. */
  readonly subresourceStrategy?: SubresourceStrategy<T> | undefined;
}

export interface UpdateResult<T> {
  readonly object: T;
  readonly created: boolean;
}

/** Replaces the object. Writes nothing when nothing differs. */
export async function update<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  sent: T,
  options: UpdateOptions<T> = {},
): Promise<UpdateResult<T>> {
  const { strategy } = registry.kind;
  const { subresourceStrategy: part } = options;
  const wanted = setNamespace(registry, scope, setName(sent, name));
  const { uid } = metadataOf(wanted);
  const resourceVersion = requestedResourceVersion(wanted);
  const filled = dedupOwnerReferences(applyDefaults(registry, wanted), options);
  const next: UpdateFunction<T> = async (previous, allocate) => {
    if (resourceVersion === undefined && strategy.allowUnconditionalUpdate === false)
      throw resourceVersionRequired(registry, scope, name);
    const object = await trackManagedFields(registry, scope, filled, previous, options);
    return keepUnchangedTimes(await revised(registry, scope, object, previous, options, allocate), previous);
  };
  try {
    const preconditions = uid ? { uid } : undefined;
    return { object: await guaranteedUpdate(registry, scope, name, next, { ...options, preconditions }), created: false };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // Whoever names the object it means hears that it is not that one, as of any other.
    if (uid) throw conflict(registry.subject(scope, name), uidDiffers(registry.key(scope, name), uid));
    if (part !== undefined || strategy.allowCreateOnUpdate !== true) throw error;
    if (resourceVersion) throw notFound(registry.subject(scope, name));
    return { object: await create(registry, scope, wanted, options), created: true };
  }
}

/** The object under the name of the path. Throws a 400 when it carries another. */
export function setName<T extends ApiObject>(object: T, name: string): T {
  const metadata = metadataOf(object);
  if (metadata.name === name) return object;
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

function uidDiffers(key: string, uid: string): string {
  return preconditionFailed(key, `UID in precondition: ${uid}, UID in object meta: `);
}

function isNotFound(error: unknown): boolean {
  return error instanceof StatusError && error.status.code === 404;
}
