/**
 * An index of roles and bindings by subject, built from a whole policy. The cost of a lookup depends on the user's own
 * bindings only.
 */
import type { PolicyRule, RoleRef, Subject } from "../../../api/rbac/policy-rule.ts";
import type { UserInfo } from "../../user.ts";
import type { Policy } from "./bootstrap-policy/policy.ts";
import type { RuleGrant, RuleSource } from "./rbac.ts";

type BySubject = Map<string, RuleGrant[]>;

const CLUSTER = "";

export class SubjectRules implements RuleSource {
  readonly #clusterRoles: ReadonlyMap<string, readonly PolicyRule[]>;
  readonly #roles: ReadonlyMap<string, readonly PolicyRule[]>;
  /** By namespace; grants in all namespaces have the empty name. */
  readonly #bySubject = new Map<string, BySubject>();
  /** What `grantsFor` returned, by namespace. Authenticators return the same value for a user again. */
  readonly #byUser = new WeakMap<UserInfo, Map<string, readonly RuleGrant[]>>();

  constructor({ clusterRoles, clusterRoleBindings, roles, roleBindings }: Policy) {
    this.#clusterRoles = new Map(clusterRoles.map(({ metadata, rules = [] }) => [metadata?.name ?? "", rules]));
    this.#roles = new Map(
      roles.map(({ metadata, rules = [] }) => [`${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`, rules]),
    );
    for (const { metadata, subjects = [], roleRef } of clusterRoleBindings) {
      this.#addBinding(CLUSTER, subjects, roleRef, `ClusterRoleBinding "${metadata?.name ?? ""}"`);
    }
    for (const { metadata, subjects = [], roleRef } of roleBindings) {
      const namespace = metadata?.namespace ?? "";
      this.#addBinding(namespace, subjects, roleRef, `RoleBinding "${metadata?.name ?? ""}/${namespace}"`);
    }
  }

  grantsFor(user: UserInfo, namespace: string): readonly RuleGrant[] {
    const found = getOrSet(this.#byUser, user, () => new Map());
    // Without a binding in the namespace, so that names which clients invent are not kept.
    const key = this.#bySubject.has(namespace) ? namespace : CLUSTER;
    return getOrSet(found, key, () =>
      key === CLUSTER
        ? this.#grantsIn(CLUSTER, user)
        : [...this.#grantsIn(CLUSTER, user), ...this.#grantsIn(namespace, user)],
    );
  }

  #grantsIn(namespace: string, user: UserInfo): readonly RuleGrant[] {
    const bySubject = this.#bySubject.get(namespace);
    if (bySubject === undefined) return [];
    const keys = [userKey(user.name), ...user.groups.map(groupKey)];
    return keys.flatMap((key) => bySubject.get(key) ?? []);
  }

  /** A missing role grants nothing until it is created; the reason of a rejected request names it. */
  #addBinding(namespace: string, subjects: readonly Subject[], roleRef: RoleRef, binding: string): void {
    const isLocal = roleRef.kind === "Role" && namespace !== CLUSTER;
    const rules = isLocal ? this.#roles.get(`${namespace}/${roleRef.name}`) : this.#clusterRoles.get(roleRef.name);
    const kind = isLocal ? "Role" : "ClusterRole";
    for (const subject of subjects) {
      const key = subjectKey(subject, namespace);
      if (key === undefined) continue;
      const bySubject = getOrSet(this.#bySubject, namespace, () => new Map());
      const grant: RuleGrant =
        rules === undefined
          ? { rules: [], by: "", missing: `${kind.toLowerCase()}.${roleRef.apiGroup} "${roleRef.name}"` }
          : { rules, by: `${binding} of ${kind} "${roleRef.name}" to ${describeSubject(subject)}` };
      getOrSet(bySubject, key, () => []).push(grant);
    }
  }
}

function getOrSet<K, V>(map: { get(key: K): V | undefined; set(key: K, value: V): unknown }, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

function userKey(name: string): string {
  return `u:${name}`;
}

function groupKey(name: string): string {
  return `g:${name}`;
}

/** Undefined for an unknown kind of subject. */
function subjectKey({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  switch (kind) {
    case "User":
      return userKey(name);
    case "Group":
      return groupKey(name);
    case "ServiceAccount":
      return userKey(`system:serviceaccount:${namespace || bindingNamespace}:${name}`);
    default:
      return undefined;
  }
}

function describeSubject({ kind, name, namespace }: Subject): string {
  return kind === "ServiceAccount" ? `ServiceAccount "${name}/${namespace ?? ""}"` : `${kind} "${name}"`;
}
