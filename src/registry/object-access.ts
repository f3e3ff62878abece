/** Read and write access of admission plugins to objects of all kinds. */
import type { ObjectReader, ObjectWriter, SignalSource } from "../admission/chain/plugin.ts";
import type { ApiObject, Kind, SubresourceStrategy } from "../api/kind.ts";
import type { UserInfo } from "../auth/user.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import type { WatchCache } from "../storage/watch/cache.ts";
import { create } from "./create.ts";
import type { Registries } from "./registries.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { guaranteedUpdate } from "./write/guaranteed-update.ts";
import { pipeline } from "./write/pipeline.ts";

export function createObjectReader(registries: Registries): ObjectReader {
  return {
    get(kind, namespace, name, waiting) {
      const registry = registries.of(kind);
      const key = registry.objects.key(kind.namespaced ? namespace : undefined, name);
      return readFresh(registry, waiting, (cache) => cache.get(key)?.object);
    },
    list(kind, namespace, waiting) {
      const registry = registries.of(kind);
      const prefix = registry.objects.prefix(kind.namespaced && namespace !== "" ? namespace : undefined);
      return readFresh(registry, waiting, (cache) => {
        return cache.size === 0 ? [] : cache.list(prefix).items.map(({ object }) => object);
      });
    },
    changes: (kind, waiting) => readFresh(registries.of(kind), waiting, (cache) => cache.changes),
    peek(kind, namespace, name) {
      const registry = registries.of(kind);
      return registry.cache.get(registry.objects.key(kind.namespaced ? namespace : undefined, name))?.object;
    },
  };
}

/** Synchronous when the cache has every acknowledged write, which is the usual case. */
function readFresh<T extends ApiObject, R>(
  registry: Registry<T>,
  waiting: SignalSource,
  read: (cache: WatchCache<T>) => R,
): MaybePromise<R> {
  if (registry.isFresh) return read(registry.cache);
  return registry.freshCache(waiting instanceof AbortSignal ? { signal: waiting } : waiting).then(read);
}

/** The user of writes by the server itself, which run no admission plugins. */
const SERVER: UserInfo = { name: "system:apiserver", uid: "", groups: ["system:masters"], extra: {} };

export function createObjectWriter(registries: Registries): ObjectWriter {
  const scopeOf = (kind: Kind, namespace: string, signal: AbortSignal): Scope => {
    return { namespace: kind.namespaced ? namespace : "", group: kind.group, user: SERVER, signal };
  };
  return {
    async create(kind, namespace, object, signal) {
      return await create(registries.of(kind), scopeOf(kind, namespace, signal), object);
    },
    async update<T extends ApiObject>(
      kind: Kind<T>,
      { namespace, name, subresource }: Parameters<ObjectWriter["update"]>[1],
      next: (previous: T) => T,
      signal: AbortSignal,
    ) {
      const registry = registries.of(kind);
      const scope = scopeOf(kind, namespace, signal);
      const subresourceStrategy = kind.subresources.find((one) => one.name === subresource)?.strategy as
        | SubresourceStrategy<T>
        | undefined;
      const request = { registry, scope, name, options: { subresourceStrategy }, hasDefaults: true };
      return await guaranteedUpdate(request, (previous, store) => pipeline(request, next(previous))(previous, store));
    },
  };
}
