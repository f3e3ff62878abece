import type { ApiObject, Kind } from "../api/kind.ts";
import { badRequest, expired, StatusError } from "../api/status.ts";
import { isUnreadable } from "../storage/object-store.ts";
import { type KeyValue, latestRevision, prefixRange, type Revision, StoreError } from "../storage/store.ts";
import type { WatchCache } from "../storage/watch/cache.ts";
import type { CachedObject } from "../storage/watch/watch-event.ts";
import { type Attributes, addEvent, inSpan } from "../tracing/span.ts";
import { type ContinueToken, decodeContinue, encodeContinue, startAfter } from "./read/continue.ts";
import { parseResourceVersion, tooLargeResourceVersion } from "./read/freshness.ts";
import { type Selection, type Selectors, select } from "./read/selection.ts";
import { currentRevision, getCache } from "./read/uncached.ts";
import { createUnreadableListError } from "./read/unreadable-list.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";

export interface ListQuery extends Selectors {
  /** 0 or less: all. */
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
}

export interface ListPage<T> {
  readonly items: readonly CachedObject<T>[];
  readonly revision: Revision;
  readonly continue?: string | undefined;
  /** Number of items on later pages; undefined with a selector. */
  readonly remaining?: number | undefined;
}

/** Start key and revision of a page. */
interface PageStart extends ContinueToken {
  readonly revision: Revision;
}

/** One page of objects in key order; all pages of a list show the same revision. */
export async function list<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  query: ListQuery = {},
): Promise<ListPage<T>> {
  const selection = select(registry, scope, query);
  const limit = query.limit !== undefined && query.limit > 0 && !ignoresLimit(query) ? query.limit : undefined;
  if (query.continue) {
    const { start, revision } = decodeContinue(query.continue);
    if (query.resourceVersion && query.resourceVersion !== "0") {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    return await listAt(registry, selection, limit, {
      start,
      revision: revision ?? (await latestRevision(registry.deps.store)),
    });
  }
  if (query.resourceVersion && query.resourceVersion !== "0" && isExact(query)) {
    const revision = parseListRevision(query.resourceVersion);
    if (!Number.isSafeInteger(revision)) {
      throw futureRevision(BigInt(query.resourceVersion), registry.deps.store.current());
    }
    return await listAt(registry, selection, limit, { revision, start: "" });
  }
  if (query.resourceVersion) parseListRevision(query.resourceVersion);
  const isConsistent = query.resourceVersion === undefined || query.resourceVersion === "";
  const readsStore = isConsistent && !registry.features.has("ConsistentListFromCache");
  if (readsStore || (await getListCache(registry, scope, query.resourceVersion, isConsistent)) === undefined) {
    const from = { revision: await currentRevision(registry, query.resourceVersion), start: "" };
    return await listFromStore(registry, selection, limit, from).catch(async (error: unknown) => {
      if (registry.features.has("AllowUnsafeMalformedObjectDeletion") && isUnreadable(error)) {
        throw await createUnreadableListError(registry, selection.prefix, from.revision);
      }
      const isRejected = registry.features.has("ResilientWatchCacheInitialization") && isInitializing(registry, error);
      throw isRejected ? initializing(registry.kind, error) : error;
    });
  }
  const attributes = (): Attributes => ({ type: resourceOf(registry.kind) });
  return await inSpan("cacher.GetList", attributes, () => {
    addEvent("Ready");
    const { items, revision } = cachedCandidates(registry, scope, selection);
    addEvent("Listed items from cache", { count: items.length });
    const found = selection.matches === undefined ? items : items.filter((item) => selection.matches?.(item));
    const page = toPage(found, selection, limit, revision);
    addEvent("Filtered items", { count: page.items.length });
    registry.cache.recordList(selection.index?.name ?? "", items.length, page.items.length);
    return page;
  });
}

/** As Kubernetes' watch cache, which serves no further pages. */
function ignoresLimit({ resourceVersion, continue: token }: ListQuery): boolean {
  return resourceVersion === "0" && !token;
}

/** The error of a list at a revision that does not exist yet: etcd's, unless the number is none of etcd's. */
function futureRevision(requested: bigint, current: Revision): StatusError {
  if (requested >= 2n ** 63n) return tooLargeResourceVersion(requested.toString(), current, true);
  return new StatusError(500, "", "etcdserver: mvcc: required revision is a future revision");
}

/** Counts the lists of the latest revision. */
async function getListCache<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  resourceVersion: string | undefined,
  isConsistent: boolean,
): Promise<WatchCache<T> | undefined> {
  try {
    const cache = await getCache(registry, scope, resourceVersion);
    if (isConsistent && cache !== undefined) cache.counts.consistentLists.succeeded++;
    return cache;
  } catch (error) {
    const counts = isConsistent ? registry.cacheInUse?.counts : undefined;
    if (counts !== undefined) counts.consistentLists.failed++;
    throw error;
  }
}

function resourceOf({ group, plural }: Pick<Kind, "group" | "plural">): string {
  return group === "" ? plural : `${plural}.${group}`;
}

/** Whether a value that cannot be decrypted kept the cache from its first list. */
function isInitializing<T extends ApiObject>(registry: Registry<T>, error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === "undecryptable" && registry.cacheInUse?.isListed === false;
}

function initializing({ group, kind }: Pick<Kind, "group" | "kind">, { message }: StoreError): StatusError {
  const type = `*${group === "" ? "core" : group.split(".", 1)}.${kind}`;
  return new StatusError(429, "TooManyRequests", `storage is (re)initializing: failed to list ${type}: ${message}`, {
    details: { retryAfterSeconds: 1 },
  });
}

/** Adds the key to the error of an encrypted value, as Kubernetes does for lists. */
function listedItem<T extends ApiObject>(registry: Registry<T>, stored: KeyValue): ReturnType<typeof registry.listed> {
  try {
    return registry.listed(stored);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "undecryptable") throw error;
    const message = `unable to transform key ${JSON.stringify(stored.key)}: ${error.message}`;
    throw new StoreError(error.code, message, { cause: error, current: error.current });
  }
}

function parseListRevision(text: string): Revision {
  try {
    return parseResourceVersion(text);
  } catch (error) {
    throw error instanceof StatusError ? badRequest(`invalid resource version: ${error.message}`) : error;
  }
}

/** A resourceVersion with a limit and without resourceVersionMatch means Exact, as in Kubernetes. */
function isExact(query: ListQuery): boolean {
  if (query.resourceVersionMatch === "Exact") return true;
  return !query.resourceVersionMatch && query.limit !== undefined && query.limit > 0;
}

function cachedCandidates<T extends ApiObject>(registry: Registry<T>, scope: Scope, selection: Selection<T>) {
  const { cache } = registry;
  if (selection.name !== undefined && selection.name !== "" && (scope.namespace !== "" || !registry.kind.namespaced)) {
    const found = cache.get(`${selection.prefix}${selection.name}`);
    return { items: found === undefined ? [] : [found], revision: cache.revision() };
  }
  if (selection.index === undefined) return cache.list(selection.prefix);
  const { items, revision } = cache.listIndexed(selection.index.name, selection.index.value);
  return { items: items.filter((item) => item.key.startsWith(selection.prefix)), revision };
}

/** Lists at an older revision: from the history of the cache if it goes back that far, else from the store. */
async function listAt<T extends ApiObject>(
  registry: Registry<T>,
  selection: Selection<T>,
  limit: number | undefined,
  from: PageStart,
): Promise<ListPage<T>> {
  const { prefix, matches } = selection;
  const then = registry.cacheInUse?.listAt(prefix, from.revision);
  // A compacted revision is expired even if the cache still has it.
  if (then === undefined || (await isCompacted(registry, from.revision)))
    return await listFromStore(registry, selection, limit, from);
  const rest = from.start === "" ? then : then.slice(firstFrom(then, prefix + from.start));
  const found = matches === undefined ? rest : rest.filter(matches);
  return toPage(found, selection, limit, from.revision);
}

async function isCompacted<T extends ApiObject>(registry: Registry<T>, revision: Revision): Promise<boolean> {
  try {
    await registry.deps.store.get(registry.objects.prefix(), { revision });
    return false;
  } catch (error) {
    if (error instanceof StoreError && error.code === "compacted") return true;
    throw error;
  }
}

/** Index of the first item whose key does not precede `key`. */
function firstFrom(items: readonly { readonly key: string }[], key: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle]!.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first `limit` items, and the token of the next page. */
function toPage<T extends ApiObject>(
  found: readonly CachedObject<T>[],
  { prefix, matches }: Selection<T>,
  limit: number | undefined,
  revision: Revision,
): ListPage<T> {
  if (limit === undefined || found.length <= limit) return { items: found, revision };
  const page = found.slice(0, limit);
  const start = startAfter(page[page.length - 1]!.key.slice(prefix.length));
  const remaining = matches === undefined ? found.length - limit : undefined;
  return { items: page, revision, continue: encodeContinue({ revision, start }), remaining };
}

/** Lists at a revision from the store, a part at a time. */
async function listFromStore<T extends ApiObject>(
  registry: Registry<T>,
  selection: Selection<T>,
  limit: number | undefined,
  from: PageStart,
): Promise<ListPage<T>> {
  const attributes = (): Attributes => ({
    key: selection.prefix,
    resourceVersion: String(from.revision),
    limit: limit ?? 0,
    continue: from.start,
  });
  return await inSpan("List(recursive=true) etcd3", attributes, () => readPage(registry, selection, limit, from));
}

async function readPage<T extends ApiObject>(
  registry: Registry<T>,
  selection: Selection<T>,
  limit: number | undefined,
  from: PageStart,
): Promise<ListPage<T>> {
  const { prefix, matches } = selection;
  const items: CachedObject<T>[] = [];
  let last: string | undefined;
  let remaining = 0;
  for await (const part of scan(registry, prefix, from)) {
    if (items.length === limit) {
      remaining += part.length;
      continue;
    }
    for (const [i, stored] of (await registry.objects.toKindVersion(part)).entries()) {
      last = stored.key;
      const item = listedItem(registry, stored);
      const isSelected = matches?.(item) !== false;
      if (item.keptBytes === 0) item.evict();
      if (isSelected) items.push(item);
      if (items.length !== limit) continue;
      remaining += part.length - i - 1;
      break;
    }
  }
  const more = remaining > 0 && last !== undefined;
  return {
    items,
    revision: from.revision,
    ...(more ? { continue: encodeContinue({ ...from, start: startAfter(last!.slice(prefix.length)) }) } : {}),
    ...(more && matches === undefined ? { remaining } : {}),
  };
}

async function* scan<T extends ApiObject>(
  registry: Registry<T>,
  prefix: string,
  { start, revision }: PageStart,
): AsyncGenerator<readonly KeyValue[]> {
  const range = prefixRange(prefix);
  try {
    const parts = registry.deps.store.scan(start === "" ? range : { ...range, from: prefix + start }, { revision });
    for await (const { items } of parts) yield items;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    if (error.code === "compacted") {
      if (start === "") throw expired("The resourceVersion for the provided list is too old.");
      throw expired(CONTINUE_EXPIRED, { continue: encodeContinue({ revision: undefined, start }) });
    }
    if (error.code === "future-revision") {
      throw futureRevision(BigInt(revision), registry.deps.store.current());
    }
    throw error;
  }
}

const CONTINUE_EXPIRED = [
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without",
  "the continue parameter, or use the continue token in this response to retrieve the remainder of the results.",
  "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or",
  "deleted between the time the first chunk was returned and now may show up in the list.",
].join(" ");
