/** One resource behind its verbs: the kind, where its objects lie, and the cache that reads are answered from. */

import type { ApiObject, Kind } from "../api/kind.ts";
import type { ErrorSubject } from "../api/status.ts";
import type { FieldError } from "../schema/validation/field-error.ts";
import { formatTime } from "../schema/value/time.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { StorageMediaType } from "../storage/codec.ts";
import { ObjectStore } from "../storage/object-store.ts";
import type { Revision, Store } from "../storage/store.ts";
import { WatchCache } from "../storage/watch/cache.ts";
import type { CacheMemory } from "../storage/watch/cache-memory.ts";
import { ConvertedFeed } from "../storage/watch/converted-feed.ts";
import type { Feed, StoreFeed } from "../storage/watch/feed.ts";
import type { IndexFunctions } from "../storage/watch/indexes.ts";
import type { Allocator } from "./allocator.ts";
import type { Scope } from "./scope.ts";

export interface RegistryDeps {
  readonly store: Store;
  /** `/registry` */
  readonly prefix: string;
  readonly mediaType?: StorageMediaType | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Seconds after which events are forgotten; they are kept when absent. */
  readonly eventTtlSeconds?: number | undefined;
  /** How many objects of a collection are removed at a time; one after the other when absent. */
  readonly deleteCollectionWorkers?: number | undefined;
  /** Whether somebody acts on the `orphan` and `foregroundDeletion` finalizers; otherwise they are not set. */
  readonly garbageCollector?: boolean | undefined;
  /** Whether clients' reads of a kind go to the store; by default they are answered from a watch cache. */
  readonly isUncached?: ((kind: Kind) => boolean) | undefined;
  /** Whether the labels of a binding become those of its pod. */
  readonly bindingLabels?: boolean | undefined;
  /** What is wrong with an object by the cluster's policy, beside what its kind finds wrong. */
  readonly validatePolicy?: ClusterPolicy | undefined;
}

export type ClusterPolicy = (kind: Kind, next: ApiObject, previous: ApiObject | undefined) => readonly FieldError[];

/** What the caches of all kinds have in common. */
export interface SharedCacheResources {
  readonly feed: StoreFeed;
  readonly memory: CacheMemory;
}

export class Registry<T extends ApiObject = ApiObject> implements AsyncDisposable {
  readonly kind: Kind<T>;
  readonly objects: ObjectStore<T>;
  readonly deps: RegistryDeps;
  /** Set where objects hold what no two may have. */
  allocator: Allocator<T> | undefined;
  /** All versions in which its objects are served, in any order. */
  readonly versions: () => readonly Kind[];
  /** Whether clients' reads go to the store, whatever happens. */
  readonly isUncached: boolean;
  #cache: WatchCache<T> | undefined;

  readonly #shared: SharedCacheResources;

  constructor(kind: Kind<T>, deps: RegistryDeps, shared: SharedCacheResources, versions?: () => readonly Kind[]) {
    this.#shared = shared;
    this.kind = kind;
    this.versions = versions ?? (() => [kind]);
    this.deps = deps;
    this.isUncached = deps.isUncached?.(kind) ?? false;
    this.objects = new ObjectStore({ store: deps.store, kind, prefix: deps.prefix, mediaType: deps.mediaType });
  }

  /**
   * Made when first asked for: a kind that nobody reads costs nothing. The server's own parts use it even where
   * clients' reads are `uncached`.
   */
  get cache(): WatchCache<T> {
    if (this.#cache === undefined) {
      const { clock, log, random } = this.deps;
      this.#cache = new WatchCache({
        memory: this.#shared.memory,
        feed: this.#feed,
        fallible: this.kind.converter !== undefined,
        objects: this.objects,
        clock,
        log,
        random,
        indexes: indexesOf(this.kind),
      });
    }
    return this.#cache;
  }

  /**
   * Whether clients' reads go to the store: always, or while a webhook that the cache depends on fails. What the store
   * has in the version that is asked for can be read then, and of all else clients hear why it cannot.
   */
  get bypassesCache(): boolean {
    return this.isUncached || this.#cache?.stalled === true;
  }

  /** The cache, showing every write that was acknowledged before this call. */
  async freshCache(scope: Pick<Scope, "signal">): Promise<WatchCache<T>> {
    // The signal is made when it is asked for: mostly the cache needs nobody to wait.
    if (!this.isFresh) await this.cache.waitFor(this.deps.store.current(), scope.signal);
    return this.cache;
  }

  /** Whether the cache shows every write that was acknowledged. */
  get isFresh(): boolean {
    return this.cache.hasReached(this.deps.store.current());
  }

  /** The cache, if it is in use: for those who look on and must not be what brings it into use. */
  get cacheInUse(): WatchCache<T> | undefined {
    return this.#cache;
  }

  /** Resolves when the cache, if it is in use, has begun. */
  async ready(): Promise<void> {
    if (this.#cache !== undefined) await this.startedCache();
  }

  /** The cache with its first list, or stalled because a webhook keeps it from having one. */
  async startedCache(): Promise<WatchCache<T>> {
    const { cache } = this;
    if (this.kind.converter === undefined) await cache.ready();
    else await cache.waitFor(0 as Revision);
    return cache;
  }

  subject(scope: Scope, name: string): ErrorSubject {
    return { group: scope.group, resource: this.kind.plural, name };
  }

  /** What errors about invalid objects name: the kind, not the resource. */
  kindSubject(scope: Scope, name: string): ErrorSubject {
    return { group: scope.group, resource: this.kind.kind, name };
  }

  key(scope: Scope, name: string): string {
    return this.objects.key(this.kind.namespaced ? scope.namespace : undefined, name);
  }

  prefix(scope: Scope): string {
    return this.objects.prefix(this.kind.namespaced && scope.namespace !== "" ? scope.namespace : undefined);
  }

  /** RFC 3339 in whole seconds, as metadata has it. `offsetMs` from now. */
  timestamp(offsetMs = 0): string {
    return formatTime(this.deps.clock.now() + offsetMs);
  }

  /** How long the store keeps the object. */
  ttlSeconds(object: T): number | undefined {
    return this.kind.strategy.ttlSeconds?.(object, this.deps);
  }

  get #feed(): Feed {
    const { feed } = this.#shared;
    if (this.kind.converter === undefined) return feed;
    return new ConvertedFeed(feed, async (items) => await this.objects.toKindVersion(items));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cache?.[Symbol.asyncDispose]();
  }
}

function indexesOf<T extends ApiObject>({ indexedFields, selectableFields }: Kind<T>): IndexFunctions<T> | undefined {
  if (indexedFields === undefined) return undefined;
  return Object.fromEntries(indexedFields.map((field) => [field, selectableFields[field]!]));
}
