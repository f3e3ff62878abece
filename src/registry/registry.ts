/** What the verbs of one kind share: its object store, its watch cache and its dependencies. */

import { createDropDisabledFields, type DropDisabledFields } from "../api/gated-fields/drop-disabled-fields.ts";
import { createValidateGated, type ValidateGated } from "../api/gated-fields/gated-validation.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import type { ErrorSubject } from "../api/status.ts";
import { defaultFeatures } from "../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../flags/gates.ts";
import type { Magic } from "../schema/protobuf/envelope.ts";
import type { FieldError } from "../schema/validation/field-error.ts";
import { formatTime } from "../schema/value/time.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { Logger } from "../std/log/logger.ts";
import type { Clock } from "../std/time/clock.ts";
import type { StorageMediaType } from "../storage/codec.ts";
import { ObjectStore } from "../storage/object-store.ts";
import type { KeyValue, Revision, Store } from "../storage/store.ts";
import { WatchCache } from "../storage/watch/cache.ts";
import type { CacheMemory } from "../storage/watch/cache-memory.ts";
import { ConvertedFeed } from "../storage/watch/converted-feed.ts";
import { EncodedObject } from "../storage/watch/encoded-object.ts";
import type { Feed, StoreFeed } from "../storage/watch/feed.ts";
import type { IndexFunctions } from "../storage/watch/indexes.ts";
import type { Allocator } from "./allocator.ts";
import type { Scope } from "./scope.ts";

export interface RegistryDeps {
  readonly store: Store;
  /** The store of a kind that has one of its own, which other kinds may share; its revisions are its own as well. */
  readonly ownStoreOf?: ((kind: Kind) => Store | undefined) | undefined;
  /** `/registry` */
  readonly prefix: string;
  readonly mediaType?: StorageMediaType | undefined;
  /** See `ObjectStoreOptions`. */
  readonly names?: Magic | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** The defaults of Kubernetes 1.33 when absent. */
  readonly features?: FeatureLookup | undefined;
  /** Time to live of events; they never expire when absent. */
  readonly eventTtlSeconds?: number | undefined;
  /** Objects that a delete-collection deletes in parallel; 1 when absent. */
  readonly deleteCollectionWorkers?: number | undefined;
  /**
   * Whether a garbage collector runs, which handles the `orphan` and `foregroundDeletion` finalizers; else they are not
   * set.
   */
  readonly garbageCollector?: boolean | undefined;
  /** Whether clients' reads of the kind go to the store instead of a watch cache; no kind when absent. */
  readonly isUncached?: ((kind: Kind) => boolean) | undefined;
  /** Whether a binding copies its labels to the pod. */
  readonly bindingLabels?: boolean | undefined;
  /** Validates objects of all kinds, after the strategy of the kind. */
  readonly validatePolicy?: ClusterPolicy | undefined;
  /** Returns a warning for an object that has no effect in this server. */
  readonly unenforcedWarning?: ((kind: Kind, object: ApiObject) => MaybePromise<string | undefined>) | undefined;
}

export type ClusterPolicy = (kind: Kind, next: ApiObject, previous: ApiObject | undefined) => readonly FieldError[];

/** Shared by the caches of all kinds. */
export interface SharedCacheResources {
  readonly feed: StoreFeed;
  readonly memory: CacheMemory;
}

export class Registry<T extends ApiObject = ApiObject> implements AsyncDisposable {
  readonly kind: Kind<T>;
  readonly objects: ObjectStore<T>;
  readonly deps: RegistryDeps;
  /** Set for kinds whose objects have values that must be unique, such as cluster IPs. */
  allocator: Allocator<T> | undefined;
  /** All served versions of the kind, in any order. */
  readonly versions: () => readonly Kind[];
  /** Whether clients' reads of this kind always go to the store. */
  readonly isUncached: boolean;
  readonly features: FeatureLookup;
  readonly dropDisabledFields: DropDisabledFields<T> | undefined;
  /** The rules that gates add to those of the strategy. */
  readonly validateGated: ValidateGated<T> | undefined;
  #cache: WatchCache<T> | undefined;

  readonly #shared: SharedCacheResources;

  constructor(kind: Kind<T>, deps: RegistryDeps, shared: SharedCacheResources, versions?: () => readonly Kind[]) {
    this.#shared = shared;
    this.kind = kind;
    this.versions = versions ?? (() => [kind]);
    this.deps = deps;
    this.isUncached = deps.isUncached?.(kind) ?? false;
    this.features = deps.features ?? defaultFeatures;
    this.dropDisabledFields = createDropDisabledFields(kind, this.features);
    this.validateGated = createValidateGated(kind, this.features);
    const { store, prefix, mediaType, names, clock } = deps;
    const namesUnreadable = this.features.has("AllowUnsafeMalformedObjectDeletion");
    this.objects = new ObjectStore({ store, kind, prefix, mediaType, names, clock, namesUnreadable });
  }

  /**
   * Created at the first read: an unused kind has no cache. The server's own reads use it even when those of clients
   * bypass it.
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
   * Whether clients' reads go to the store: always, or while the conversion webhook of the cache fails. Objects that
   * are stored in the requested version can be read then; reads of others return the webhook's error.
   */
  get bypassesCache(): boolean {
    return this.isUncached || this.#cache?.stalled === true;
  }

  /** The cache, once it has every write that was acknowledged before this call. */
  async freshCache(scope: Pick<Scope, "signal">): Promise<WatchCache<T>> {
    const { store } = this.deps;
    if (store.readRevision !== undefined) {
      await this.cache.waitFor(await store.readRevision(), scope.signal);
      return this.cache;
    }
    // Reading `scope.signal` creates the signal, and mostly there is nothing to wait for.
    if (!this.isFresh) await this.cache.waitFor(this.deps.store.current(), scope.signal);
    return this.cache;
  }

  /** Whether the cache has every write that is known here. */
  get isFresh(): boolean {
    return this.cache.hasReached(this.deps.store.current());
  }

  /** The cache if it exists; does not create it. */
  get cacheInUse(): WatchCache<T> | undefined {
    return this.#cache;
  }

  /** An object of a list that is read from the store: a large one is read again when it is encoded. */
  listed(item: KeyValue): EncodedObject<T> {
    const { memory } = this.#shared;
    const decode = (stored: KeyValue): T => this.objects.decode(stored);
    const reread =
      this.kind.converter === undefined
        ? (key: string, modified: Revision) => this.objects.readVersion(key, modified)
        : undefined;
    const source = { memory, decode, reread };
    return new EncodedObject(this.kind, item.key, decode(item), item.modified, { source, item });
  }

  /** Resolves when the cache, if it exists, has its first list. */
  async ready(): Promise<void> {
    if (this.#cache !== undefined) await this.startedCache();
  }

  /** The cache once it has its first list, or is stalled because the conversion webhook fails. */
  async startedCache(): Promise<WatchCache<T>> {
    const { cache } = this;
    if (this.kind.converter === undefined) await cache.ready();
    else await cache.waitFor(0 as Revision);
    return cache;
  }

  subject(scope: Scope, name: string): ErrorSubject {
    return { group: scope.group, resource: this.kind.plural, name };
  }

  /** The subject of Invalid errors, which name the kind instead of the resource. */
  kindSubject(scope: Scope, name: string): ErrorSubject {
    // The internal type of events is that of the core group.
    const group = this.kind.group === "events.svc.io" ? "" : scope.group;
    return { group, resource: this.kind.kind, name };
  }

  key(scope: Scope, name: string): string {
    return this.objects.key(this.kind.namespaced ? scope.namespace : undefined, name);
  }

  prefix(scope: Scope): string {
    return this.objects.prefix(this.kind.namespaced && scope.namespace !== "" ? scope.namespace : undefined);
  }

  /** The current time plus `offsetMs`, in the format of metadata: RFC 3339 in whole seconds. */
  timestamp(offsetMs = 0): string {
    return formatTime(this.deps.clock.now() + offsetMs);
  }

  /** The time to live of the object in the store; undefined for unlimited. */
  ttlSeconds(object: T): number | undefined {
    return this.kind.strategy.ttlSeconds?.(object, this.deps);
  }

  /** The revision of the store before this server used it. */
  get openedRevision(): Revision {
    return this.#shared.feed.opened;
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
