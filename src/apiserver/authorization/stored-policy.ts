/** The rules of the stored RBAC objects, which follow their changes. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import type { ClusterRoleBinding } from "../../api/rbac/cluster-role-binding/schema.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import type { Role } from "../../api/rbac/role/schema.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import type { RoleBinding } from "../../api/rbac/role-binding/schema.ts";
import type { RuleSource } from "../../auth/authz/rbac/rbac.ts";
import { SubjectRules } from "../../auth/authz/rbac/subject-rules.ts";
import type { Registries } from "../../registry/registries.ts";
import { runInSlices, runSteps, type Steps } from "../../std/async/steps.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { CachedObject } from "../../storage/watch/watch-event.ts";

export interface StoredPolicy extends RuleSource {
  /** Resolves when the RBAC objects are loaded. */
  ready(): Promise<void>;
}

export function createStoredPolicy(registries: Registries): StoredPolicy {
  const rules = new SubjectRules();
  const roles: Changes<ClusterRole | Role> = {
    put: (role) => rules.putRole(role),
    delete: (role) => rules.deleteRole(role),
  };
  const bindings: Changes<ClusterRoleBinding | RoleBinding> = {
    put: (binding) => rules.putBinding(binding),
    delete: (binding) => rules.deleteBinding(binding),
  };
  const followers = [
    new Follower(registries, clusterRoleKind, roles),
    new Follower(registries, roleKind, roles),
    new Follower(registries, clusterRoleBindingKind, bindings),
    new Follower(registries, roleBindingKind, bindings),
  ];
  let following: Promise<void> | undefined;
  const followInSlices = async (): Promise<void> => {
    const slice = new TimeSlice();
    for (const follower of followers) await runInSlices(follower.follow(), slice);
  };
  return {
    grantsFor(user, namespace) {
      for (const follower of followers) if (follower.isBehind) runSteps(follower.follow());
      return rules.grantsFor(user, namespace);
    },
    prepare() {
      if (!followers.some(({ isBehind }) => isBehind)) return following;
      following ??= followInSlices().finally(() => {
        following = undefined;
      });
      return following;
    },
    ready: async () => void (await Promise.all(followers.map((follower) => follower.ready()))),
  };
}

interface Changes<T> {
  put(object: T): void;
  delete(object: T): void;
}

/** Passes on what has changed in the cache of a kind since the previous call. */
class Follower<T extends ApiObject> {
  readonly #registries: Registries;
  readonly #kind: Kind<T>;
  readonly #changes: Changes<T>;
  /** By key in the store. The cache has another item for each change, also for one that a restored store repeats. */
  readonly #known = new Map<string, { readonly item: CachedObject<T>; readonly object: T }>();
  #seenChanges = -1;

  constructor(registries: Registries, kind: Kind<T>, changes: Changes<T>) {
    this.#registries = registries;
    this.#kind = kind;
    this.#changes = changes;
  }

  ready(): Promise<void> {
    return this.#registries.of(this.#kind).cache.ready();
  }

  get isBehind(): boolean {
    return this.#registries.of(this.#kind).cache.changes !== this.#seenChanges;
  }

  /** A step for each change. Begins again when the cache has changed between two steps. */
  *follow(): Steps<void> {
    while (this.isBehind) yield* this.#followList();
  }

  *#followList(): Steps<void> {
    const { cache, objects } = this.#registries.of(this.#kind);
    const { changes } = cache;
    const { items } = cache.list(objects.prefix());
    for (const item of items) {
      const previous = this.#known.get(item.key);
      if (previous?.item === item) continue;
      const { object } = item;
      if (previous !== undefined) this.#changes.delete(previous.object);
      this.#known.set(item.key, { item, object });
      this.#changes.put(object);
      yield;
      if (this.#registries.of(this.#kind).cache.changes !== changes) return;
    }
    if (this.#known.size > items.length) this.#dropMissing(new Set(items.map(({ key }) => key)));
    // Not before: an object that cannot be decoded fails each request, instead of leaving older rules in effect.
    this.#seenChanges = changes;
  }

  #dropMissing(present: ReadonlySet<string>): void {
    for (const [key, { object }] of this.#known) {
      if (present.has(key)) continue;
      this.#known.delete(key);
      this.#changes.delete(object);
    }
  }
}
