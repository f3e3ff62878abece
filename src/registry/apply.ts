/** Server-side apply. */
import type { ApiObject } from "../api/kind.ts";
import { conflict, isNotFound } from "../api/status.ts";
import { createFromApply } from "./create.ts";
import { type ApplyOptions, type Configuration, mergeConfiguration } from "./managed-fields/apply-configuration.ts";
import { withConversions } from "./managed-fields/conversions.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import type { UpdateResult } from "./update.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { metadataOf } from "./write/object-metadata.ts";
import { pipeline } from "./write/pipeline.ts";

/**
 * Applies the configuration to the stored object, or creates the object. Throws a 409 with a cause for each field that
 * the configuration would change and another manager owns.
 */
export async function apply<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  configuration: Configuration,
  options: ApplyOptions<T>,
): Promise<UpdateResult<T>> {
  const request = { registry, scope, name, options, hasManagedFields: true };
  const merge = (previous: T | undefined) =>
    withConversions(registry.kind, (conversions) => mergeConfiguration(request, configuration, previous, conversions));
  const update: UpdateFunction<T> = async (previous, store) => {
    return await pipeline(request, await merge(previous))(previous, store);
  };
  try {
    return { object: await guaranteedUpdate(request, update), created: false };
  } catch (error) {
    if (!isNotFound(error) || options.subresourceStrategy !== undefined) throw error;
  }
  const object = await merge(undefined);
  const { uid } = metadataOf(object);
  if (uid) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
    throw conflict(registry.subject(scope, name), why);
  }
  return { object: await createFromApply(request, object), created: true };
}
