import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { FindBound } from "../../auth/service-account/authenticator.ts";
import type { Registries } from "../../registry/registries.ts";

const KINDS = { ServiceAccount: serviceAccountKind, Pod: podKind, Secret: secretKind, Node: nodeKind };

/** Finds the objects of bound tokens in the caches; waits for the latest state when the cache does not match. */
export function createBoundObjectFinder(registries: Registries, signal: AbortSignal): FindBound {
  return ({ kind, namespace, name, uid }) => {
    const registry = registries.of(KINDS[kind] as Kind);
    const key = registry.objects.key(registry.kind.namespaced ? namespace : undefined, name);
    const cached = registry.cache.get(key)?.object;
    if (cached !== undefined && (uid === undefined || cached.metadata?.uid === uid)) return cached;
    return registry.freshCache({ signal }).then((cache) => cache.get(key)?.object);
  };
}
