import type { ApiObject } from "../api/kind.ts";
import { type DeleteOptions, isMissing, removeObject } from "./delete.ts";
import { type ListPage, type ListQuery, list } from "./list.ts";
import type { Registry, Scope } from "./registry.ts";

/** Removes, one after the other, what a list would show. Resolves with that list. */
export async function removeCollection<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  query: ListQuery,
  options: DeleteOptions,
): Promise<ListPage<T>> {
  const page = await list(registry, scope, query);
  for (const { object } of page.items) {
    scope.signal.throwIfAborted();
    const namespace = object.metadata?.namespace ?? "";
    try {
      await removeObject(registry, { ...scope, namespace }, object, options);
    } catch (error) {
      // Somebody else was faster.
      if (!isMissing(error)) throw error;
    }
  }
  return page;
}
