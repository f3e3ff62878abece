/** The rules of the stored RBAC objects, derived again after each change. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import type { RuleSource } from "../../auth/authz/rbac/rbac.ts";
import { SubjectRules } from "../../auth/authz/rbac/subject-rules.ts";
import type { Registries } from "../../registry/registries.ts";

export interface StoredPolicy extends RuleSource {
  /** Resolves when the RBAC objects are loaded. */
  ready(): Promise<void>;
}

export function createStoredPolicy(registries: Registries): StoredPolicy {
  const kinds = [clusterRoleKind, clusterRoleBindingKind, roleKind, roleBindingKind] as const;
  const caches = (): readonly { readonly changes: number; ready(): Promise<void> }[] =>
    kinds.map((kind) => registries.of(kind as Kind).cache);
  let grants: SubjectRules | undefined;
  let seenChanges = -1;
  return {
    grantsFor(user, namespace) {
      let changes = 0;
      for (const kind of kinds) changes += registries.of(kind as Kind).cache.changes;
      if (grants === undefined || changes !== seenChanges) {
        grants = new SubjectRules({
          clusterRoles: listObjects(registries, clusterRoleKind),
          clusterRoleBindings: listObjects(registries, clusterRoleBindingKind),
          roles: listObjects(registries, roleKind),
          roleBindings: listObjects(registries, roleBindingKind),
        });
        seenChanges = changes;
      }
      return grants.grantsFor(user, namespace);
    },
    ready: async () => void (await Promise.all(caches().map((cache) => cache.ready()))),
  };
}

function listObjects<T extends ApiObject>(registries: Registries, kind: Kind<T>): readonly T[] {
  const registry = registries.of(kind);
  return registry.cache.list(registry.objects.prefix()).items.map(({ object }) => object);
}
