/**
 * An index of roles and bindings by subject, which follows their changes. The cost of a lookup depends on the user's
 * own bindings only, that of a change on the changed object only.
 */
import type { ClusterRole } from "../../../api/rbac/cluster-role/schema.ts";
import type { ClusterRoleBinding } from "../../../api/rbac/cluster-role-binding/schema.ts";
import type { PolicyRule, Subject } from "../../../api/rbac/policy-rule.ts";
import type { Role } from "../../../api/rbac/role/schema.ts";
import type { RoleBinding } from "../../../api/rbac/role-binding/schema.ts";
import type { UserInfo } from "../../user.ts";
import type { Policy } from "./bootstrap-policy/policy.ts";
import type { RuleGrant, RuleSource } from "./rbac.ts";

type AnyRole = Role | ClusterRole;
type AnyBinding = RoleBinding | ClusterRoleBinding;

/** A subject of a binding. */
interface Entry {
  readonly binding: AnyBinding;
  readonly index: number;
}

/** The subjects of the bindings of a namespace, by name. Service accounts are users. */
interface Subjects {
  readonly users: Map<string, Entry[]>;
  readonly groups: Map<string, Entry[]>;
}

/** The namespace of objects of the cluster. */
const CLUSTER = "";

export class SubjectRules implements RuleSource {
  /** By namespace and name. */
  readonly #roles = new Map<string, readonly PolicyRule[]>();
  /** By namespace; grants in all namespaces have the empty name. */
  readonly #subjects = new Map<string, Subjects>();
  /** What `grantsFor` returned, by namespace. Authenticators return the same value for a user again. */
  #byUser = new WeakMap<UserInfo, Map<string, readonly RuleGrant[]>>();

  constructor(policy?: Policy) {
    for (const role of [...(policy?.clusterRoles ?? []), ...(policy?.roles ?? [])]) this.putRole(role);
    for (const binding of [...(policy?.clusterRoleBindings ?? []), ...(policy?.roleBindings ?? [])]) {
      this.putBinding(binding);
    }
  }

  /** Adds or replaces a role. */
  putRole(role: AnyRole): void {
    this.#roles.set(keyOf(role), role.rules ?? []);
    this.#byUser = new WeakMap();
  }

  deleteRole(role: AnyRole): void {
    this.#roles.delete(keyOf(role));
    this.#byUser = new WeakMap();
  }

  /** Adds a binding; one that replaces another is added after the other has been deleted. */
  putBinding(binding: AnyBinding): void {
    const namespace = namespaceOf(binding);
    for (const [index, subject] of (binding.subjects ?? []).entries()) {
      const entry = { binding, index };
      this.#change(subject, namespace, (entries) => {
        // A binding may repeat a subject: the first one counts.
        if (entries.at(-1)?.binding !== binding) entries.push(entry);
      });
    }
    this.#byUser = new WeakMap();
  }

  deleteBinding(binding: AnyBinding): void {
    const namespace = namespaceOf(binding);
    for (const subject of binding.subjects ?? []) {
      this.#change(subject, namespace, (entries) => {
        const at = entries.findIndex((entry) => entry.binding === binding);
        if (at >= 0) entries.splice(at, 1);
      });
    }
    this.#byUser = new WeakMap();
  }

  grantsFor(user: UserInfo, namespace: string): readonly RuleGrant[] {
    const found = getOrSet(this.#byUser, user, () => new Map());
    // Without a binding in the namespace, so that names which clients invent are not kept.
    const key = this.#subjects.has(namespace) ? namespace : CLUSTER;
    return getOrSet(found, key, () =>
      key === CLUSTER
        ? this.#grantsIn(CLUSTER, user)
        : [...this.#grantsIn(CLUSTER, user), ...this.#grantsIn(namespace, user)],
    );
  }

  /** In the order of the bindings' names; by the first subject of each that is the user or a group of it. */
  #grantsIn(namespace: string, user: UserInfo): readonly RuleGrant[] {
    const subjects = this.#subjects.get(namespace);
    if (subjects === undefined) return [];
    const first = new Map<AnyBinding, number>();
    const add = ({ binding, index }: Entry): void => {
      first.set(binding, Math.min(index, first.get(binding) ?? index));
    };
    for (const entry of subjects.users.get(user.name) ?? []) add(entry);
    for (const group of user.groups) for (const entry of subjects.groups.get(group) ?? []) add(entry);
    return [...first]
      .sort(([a], [b]) => (nameOf(a) < nameOf(b) ? -1 : 1))
      .map(([binding, index]) => this.#grant(binding, index));
  }

  /** A missing role grants nothing until it is created; the reason of a rejected request names it. */
  #grant(binding: AnyBinding, index: number): RuleGrant {
    const { roleRef, subjects = [] } = binding;
    const namespace = namespaceOf(binding);
    const isLocal = roleRef.kind === "Role" && namespace !== CLUSTER;
    const kind = isLocal ? "Role" : "ClusterRole";
    const rules = this.#roles.get(`${isLocal ? namespace : CLUSTER}/${roleRef.name}`);
    if (rules === undefined) {
      return { rules: [], by: "", missing: `${kind.toLowerCase()}.${roleRef.apiGroup} "${roleRef.name}"` };
    }
    const name = nameOf(binding);
    const by = namespace === CLUSTER ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${namespace}"`;
    return { rules, by: `${by} of ${kind} "${roleRef.name}" to ${describeSubject(subjects[index]!)}` };
  }

  #change(subject: Subject, namespace: string, change: (entries: Entry[]) => void): void {
    const subjects = this.#subjects.get(namespace) ?? { users: new Map(), groups: new Map() };
    const byName = subject.kind === "Group" ? subjects.groups : subjects.users;
    const name = subjectName(subject, namespace);
    if (name === undefined) return;
    const entries = byName.get(name) ?? [];
    change(entries);
    if (entries.length > 0) byName.set(name, entries);
    else byName.delete(name);
    if (subjects.users.size + subjects.groups.size > 0) this.#subjects.set(namespace, subjects);
    else this.#subjects.delete(namespace);
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

function nameOf({ metadata }: AnyRole | AnyBinding): string {
  return metadata?.name ?? "";
}

function namespaceOf({ metadata }: AnyRole | AnyBinding): string {
  return metadata?.namespace ?? CLUSTER;
}

function keyOf(role: AnyRole): string {
  return `${namespaceOf(role)}/${nameOf(role)}`;
}

/** Undefined for an unknown kind of subject. */
function subjectName({ kind, name, namespace }: Subject, bindingNamespace: string): string | undefined {
  if (kind === "User" || kind === "Group") return name;
  return kind === "ServiceAccount" ? `system:serviceaccount:${namespace || bindingNamespace}:${name}` : undefined;
}

function describeSubject({ kind, name, namespace }: Subject): string {
  return kind === "ServiceAccount" ? `ServiceAccount "${name}/${namespace ?? ""}"` : `${kind} "${name}"`;
}
