import type { ApiObject } from "../api/kind.ts";
import type { CachedObject } from "../storage/watch/cache.ts";
import { type DeleteOptions, isMissing, removeObject } from "./delete.ts";
import { type ListPage, type ListQuery, list } from "./list.ts";
import type { Registry, Scope } from "./registry.ts";

/** As many are listed at once. */
const PAGE_ITEMS = 10_000;

/** Removes, one after the other, what a list would show, page by page. Resolves with that list. */
export async function removeCollection<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  query: ListQuery,
  options: DeleteOptions,
): Promise<ListPage<T>> {
  const limited = query.limit !== undefined && query.limit > 0;
  const removed: CachedObject<T>[] = [];
  for (let next = limited ? query : { ...query, limit: PAGE_ITEMS }; ; ) {
    const page = await list(registry, scope, next);
    for (const item of page.items) {
      scope.signal.throwIfAborted();
      await removeOne(registry, scope, item.object, options);
    }
    if (limited) return page;
    removed.push(...page.items);
    if (page.continue === undefined) return { items: removed, revision: page.revision };
    next = { ...next, resourceVersion: undefined, continue: page.continue };
  }
}

async function removeOne<T extends ApiObject>(registry: Registry<T>, scope: Scope, object: T, options: DeleteOptions) {
  const namespace = object.metadata?.namespace ?? "";
  try {
    await removeObject(registry, { ...scope, namespace }, object, options);
  } catch (error) {
    // Somebody else was faster.
    if (!isMissing(error)) throw error;
  }
}
