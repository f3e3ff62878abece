import type { ApiObject } from "../api/kind.ts";
import { isNotFound } from "../api/status.ts";
import type { CachedObject } from "../storage/watch/watch-event.ts";
import { type DeleteOptions, removeExisting } from "./delete.ts";
import { type ListPage, type ListQuery, list } from "./list.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";

/** Objects per page of the list. */
const PAGE_ITEMS = 10_000;

/**
 * Deletes the objects that `query` lists, page by page, with `--delete-collection-workers` in parallel. Stops at the
 * first failure. Resolves with the list.
 */
export async function deleteCollection<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  query: ListQuery,
  options: DeleteOptions,
): Promise<ListPage<T>> {
  const limited = query.limit !== undefined && query.limit > 0;
  const removed: CachedObject<T>[] = [];
  for (let next = limited ? query : { ...query, limit: PAGE_ITEMS }; ; ) {
    const page = await list(registry, scope, next);
    await deleteAll(registry, scope, page.items, options);
    if (limited) return page;
    removed.push(...page.items);
    if (page.continue === undefined) return { items: removed, revision: page.revision };
    next = { ...next, resourceVersion: undefined, resourceVersionMatch: undefined, continue: page.continue };
  }
}

async function deleteAll<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  items: readonly CachedObject<T>[],
  options: DeleteOptions,
): Promise<void> {
  const left = items.values();
  let failed = false;
  const work = async (): Promise<void> => {
    for (const { object } of left) {
      scope.signal.throwIfAborted();
      if (failed) return;
      try {
        await deleteOne(registry, scope, object, options);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const workers = Math.min(registry.deps.deleteCollectionWorkers ?? 1, items.length);
  const outcomes = await Promise.allSettled(Array.from({ length: workers }, work));
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure !== undefined) throw failure.reason;
}

async function deleteOne<T extends ApiObject>(registry: Registry<T>, scope: Scope, object: T, options: DeleteOptions) {
  const namespace = object.metadata?.namespace ?? "";
  try {
    await removeExisting(registry, { ...scope, namespace }, object, options);
  } catch (error) {
    // Deleted by another request.
    if (!isNotFound(error)) throw error;
  }
}
