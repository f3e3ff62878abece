/**
 * Creates Kubernetes' default roles and bindings at every start and adds rules and subjects that are missing. Rules and
 * subjects that users added stay; objects with the annotation `autoupdate: "false"` are not changed.
 */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import { roleKind } from "../../api/rbac/role/kind.ts";
import { roleBindingKind } from "../../api/rbac/role-binding/kind.ts";
import type { RoleBinding } from "../../api/rbac/role-binding/schema.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { StatusError } from "../../api/status.ts";
import { bootstrapPolicyWith } from "../../auth/authz/rbac/bootstrap-policy/policy.ts";
import { findUncovered } from "../../auth/authz/rbac/rules-cover.ts";
import { MASTERS } from "../../auth/user.ts";
import { create } from "../../registry/create.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { update } from "../../registry/update.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { OWN_FIELD_MANAGER } from "./ensure.ts";

const AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate";

/** Writes all objects concurrently, so that they share one sync of the store. Up-to-date objects are not written. */
export async function reconcileBootstrapPolicy(registries: Registries, signal: AbortSignal): Promise<void> {
  const policy = bootstrapPolicyWith(registries.features);
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = policy;
  const reconcile = async <T extends ApiObject>(
    kind: Kind<T>,
    objects: readonly T[],
    merge: (found: T, wanted: T) => T,
  ): Promise<void> => {
    await Promise.all(objects.map((object) => reconcileOne(registries, kind, object, merge, signal)));
  };
  await Promise.all([
    reconcile(clusterRoleKind, clusterRoles, mergeRole),
    reconcile(roleKind, roles, mergeRole),
    reconcile(clusterRoleBindingKind, clusterRoleBindings, mergeBinding),
    reconcile(roleBindingKind, roleBindings, mergeBinding),
  ]);
}

async function reconcileOne<T extends ApiObject>(
  registries: Registries,
  kind: Kind<T>,
  wanted: T,
  merge: (found: T, wanted: T) => T,
  signal: AbortSignal,
): Promise<void> {
  const registry = registries.of(kind);
  const { name = "", namespace = "" } = wanted.metadata ?? {};
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  const scope: Scope = { namespace, group: kubernetesGroup(kind.group), user, signal };
  const found = (await registry.freshCache(scope)).get(registry.key(scope, name))?.object;
  try {
    if (found === undefined) {
      await create(registry, scope, wanted, OWN_FIELD_MANAGER);
    } else if (found.metadata?.annotations?.[AUTOUPDATE] !== "false") {
      const next = mergeMetadata(merge(found, wanted), found, wanted);
      if (deepEqual(next, found)) return;
      if (hasOtherRoleRef(found, wanted)) {
        // The roleRef of a binding is immutable.
        await remove(registry, scope, name, {});
        await create(registry, scope, wanted, OWN_FIELD_MANAGER);
      } else {
        await update(registry, scope, name, next, OWN_FIELD_MANAGER);
      }
    }
  } catch (error) {
    // Another server over the same store reconciles the same object.
    if (!(error instanceof StatusError) || (error.status.code !== 409 && error.status.code !== 404)) throw error;
  }
}

function mergeMetadata<T extends ApiObject>(object: T, found: T, wanted: T): T {
  const labels = { ...wanted.metadata?.labels, ...found.metadata?.labels };
  const annotations = { ...wanted.metadata?.annotations, ...found.metadata?.annotations };
  return { ...object, metadata: { ...found.metadata, labels, annotations } };
}

/** The rules of an aggregated role are computed from the roles that it selects. */
function mergeRole<T extends ClusterRole>(found: T, wanted: T): T {
  if (wanted.aggregationRule !== undefined) {
    const selectors = found.aggregationRule?.clusterRoleSelectors ?? [];
    const missing = (wanted.aggregationRule.clusterRoleSelectors ?? []).filter((one) => !isIn(one, selectors));
    return { ...found, aggregationRule: { clusterRoleSelectors: [...selectors, ...missing] } };
  }
  const rules = found.rules ?? [];
  const missing = (wanted.rules ?? []).filter((rule) => findUncovered(rules, [rule]).length > 0);
  return { ...found, rules: [...rules, ...missing] };
}

interface Reference {
  readonly apiGroup?: string | undefined;
}

type Binding = Pick<RoleBinding, "subjects" | "roleRef" | "metadata">;

function mergeBinding<T extends Binding>(found: T, wanted: T): T {
  const subjects = found.subjects ?? [];
  const missing = (wanted.subjects ?? []).filter((subject) => !subjects.some((other) => isSame(other, subject)));
  const all = [...subjects, ...missing];
  const roleRef = isSame(found.roleRef, wanted.roleRef) ? found.roleRef : wanted.roleRef;
  return { ...found, ...(all.length === 0 ? {} : { subjects: all }), roleRef };
}

function hasOtherRoleRef(found: ApiObject & Partial<Binding>, wanted: ApiObject & Partial<Binding>): boolean {
  return !isSame(found.roleRef, wanted.roleRef);
}

/** Whether two references differ at most in the alias of the group: Kubernetes on the same store writes its own. */
function isSame(one: Reference | undefined, other: Reference | undefined): boolean {
  return deepEqual(withKubernetesGroup(one), withKubernetesGroup(other));
}

function withKubernetesGroup(reference: Reference | undefined): Reference | undefined {
  const apiGroup = reference?.apiGroup;
  return apiGroup === undefined ? reference : { ...reference, apiGroup: kubernetesGroup(apiGroup) };
}

function isIn<T>(one: T, list: readonly T[]): boolean {
  return list.some((other) => deepEqual(other, one));
}
