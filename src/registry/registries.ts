import type { ApiObject, Kind } from "../api/kind.ts";
import type { Scheme } from "../api/scheme.ts";
import { defaultFeatures } from "../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../flags/gates.ts";
import { releaseLongSets } from "../schema/value/fields-v1-cache.ts";
import { normalizePrefix } from "../storage/keys.ts";
import { prefixRange, type Store } from "../storage/store.ts";
import { CacheMemory } from "../storage/watch/cache-memory.ts";
import { StoreFeed } from "../storage/watch/feed.ts";
import { Registry, type RegistryDeps } from "./registry.ts";

/** A map from each kind to the registry of its type: from `Kind<Pod>` to `Registry<Pod>`. */
interface RegistryMap {
  get<T extends ApiObject>(kind: Kind<T>): Registry<T> | undefined;
  set<T extends ApiObject>(kind: Kind<T>, registry: Registry<T>): unknown;
  delete(kind: Kind): boolean;
  values(): Iterable<Registry>;
}

/** The registries of a scheme, created at the first use of each kind. */
export class Registries implements AsyncDisposable {
  readonly scheme: Scheme;
  readonly deps: RegistryDeps;
  readonly #registries: RegistryMap = new Map<Kind, never>();

  /** The feature gates that are on. */
  get features(): FeatureLookup {
    return this.deps.features ?? defaultFeatures;
  }

  /** One watch of each store, for the caches of all its kinds. */
  readonly #feeds = new Map<Store, StoreFeed>();
  readonly #memory = new CacheMemory();

  constructor(scheme: Scheme, deps: RegistryDeps) {
    this.scheme = scheme;
    this.deps = deps;
  }

  /** The changes of the store of all kinds that have none of their own. */
  get feed(): StoreFeed {
    return this.#feedOf(this.deps.store);
  }

  /** The changes of the kind's store. */
  feedOf(kind: Kind): StoreFeed {
    return this.#feedOf(this.deps.ownStoreOf?.(kind) ?? this.deps.store);
  }

  #feedOf(store: Store): StoreFeed {
    let feed = this.#feeds.get(store);
    if (feed === undefined) {
      feed = new StoreFeed({ ...this.deps, store, range: prefixRange(normalizePrefix(this.deps.prefix)) });
      this.#feeds.set(store, feed);
    }
    return feed;
  }

  of<T extends ApiObject>(kind: Kind<T>): Registry<T> {
    let registry = this.#registries.get(kind);
    if (registry === undefined) {
      const store = this.deps.ownStoreOf?.(kind) ?? this.deps.store;
      const shared = { feed: this.#feedOf(store), memory: this.#memory };
      registry = new Registry(kind, { ...this.deps, store }, shared, () => this.#versionsOf(kind));
      this.#registries.set(kind, registry);
    }
    return registry;
  }

  /** The served versions of the kind, and itself: the server also uses kinds that are not served. */
  #versionsOf(kind: Kind): readonly Kind[] {
    const served = this.scheme.kinds().filter(({ storageName }) => storageName === kind.storageName);
    return served.includes(kind) ? served : [kind, ...served];
  }

  /** Drops decoded objects, encodings and large values of all caches: they are created again at their next use. */
  releaseMemory(): void {
    this.#memory.objects.clear();
    releaseLongSets();
  }

  /** The registries that exist. */
  all(): readonly Registry[] {
    return [...this.#registries.values()];
  }

  /** Closes the registry of a kind that is no longer served. */
  async removeKind(kind: Kind): Promise<void> {
    const registry = this.#registries.get(kind);
    this.#registries.delete(kind);
    await registry?.[Symbol.asyncDispose]();
  }

  /** Resolves when every existing cache has its first list. */
  async ready(): Promise<void> {
    await Promise.all([...this.#registries.values()].map((registry) => registry.ready()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#registries.values()].map((registry) => registry[Symbol.asyncDispose]()));
    await Promise.all([...this.#feeds.values()].map((feed) => feed[Symbol.asyncDispose]()));
  }
}
