/** What plugins are told and may do: the registries, as they know them. */
import type { Effects, Lookup } from "../admission/plugin.ts";
import type { ApiObject, Kind, Part } from "../api/kind.ts";
import type { UserInfo } from "../auth/user.ts";
import { change } from "./change.ts";
import { create } from "./create.ts";
import type { Registries } from "./registries.ts";
import type { Scope } from "./registry.ts";
import { updated } from "./write.ts";

export function lookupIn(registries: Registries): Lookup {
  return {
    async get(kind, namespace, name, signal) {
      const registry = registries.of(kind);
      const cache = await registry.fresh({ signal });
      return cache.get(registry.objects.key(kind.namespaced ? namespace : undefined, name))?.object;
    },
    async list(kind, namespace, signal) {
      const registry = registries.of(kind);
      const cache = await registry.fresh({ signal });
      const prefix = registry.objects.prefix(kind.namespaced && namespace !== "" ? namespace : undefined);
      return cache.list(prefix).items.map(({ object }) => object);
    },
    seen(kind, namespace, name) {
      const registry = registries.of(kind);
      return registry.cache.get(registry.objects.key(kind.namespaced ? namespace : undefined, name))?.object;
    },
  };
}

/** In the name of the server itself: nobody is asked. */
const SERVER: UserInfo = { name: "system:apiserver", uid: "", groups: ["system:masters"], extra: {} };

export function effectsOn(registries: Registries): Effects {
  const scopeOf = (kind: Kind, namespace: string, signal: AbortSignal): Scope => {
    return { namespace: kind.namespaced ? namespace : "", group: kind.group, user: SERVER, signal };
  };
  return {
    async create(kind, namespace, object, signal) {
      return await create(registries.of(kind), scopeOf(kind as unknown as Kind, namespace, signal), object);
    },
    async change<T extends ApiObject>(
      kind: Kind<T>,
      { namespace, name, subresource }: Parameters<Effects["change"]>[1],
      next: (previous: T) => T,
      signal: AbortSignal,
    ) {
      const registry = registries.of(kind);
      const scope = scopeOf(kind as unknown as Kind, namespace, signal);
      const part = kind.subresources.find((one) => one.name === subresource)?.part as Part<T> | undefined;
      return await change(registry, scope, name, async (previous, allocate) => {
        return await updated(registry, scope, next(previous), previous, { part }, allocate);
      });
    },
  };
}
