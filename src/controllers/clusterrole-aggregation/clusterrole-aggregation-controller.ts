/**
 * The cluster role aggregation controller: sets the rules of cluster roles with an `aggregationRule` to those of the
 * roles it selects.
 */
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import type { PolicyRule } from "../../api/rbac/policy-rule.ts";
import { formatApiVersion, kubernetesGroup } from "../../api/scheme.ts";
import type { Client } from "../../client/client.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";

const FIELD_MANAGER = "clusterrole-aggregation-controller";

export async function runClusterRoleAggregation(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using roles = startInformer({ client, clock, random, log, kind: clusterRoleKind }, signal);
  await roles.synced.catch(() => {});
  await using queue = createControllerQueue(deps, {
    name: "ClusterRoleAggregator",
    workers: 1,
    sync: syncClusterRole,
    onError: (name, error) => log.error("Failed to aggregate cluster role, will retry", error, { name }),
  });

  async function syncClusterRole(name: string, stopping: AbortSignal): Promise<void> {
    const role = roles.get(name);
    if (role?.aggregationRule === undefined) return;
    const rules = aggregateRules(role, roles);
    if (deepEqual(rules, role.rules ?? [])) return;
    try {
      await applyRules(client, name, rules, stopping);
    } catch (error) {
      // Another client deleted or changed the role; the informer may not have the change yet.
      if (!isNotFoundOrConflict(error)) throw error;
      if (statusCodeOf(error) === 409) queue.add(name);
    }
  }

  // Any role may be selected by any aggregation rule.
  const enqueueAggregated = (): void => {
    for (const role of roles.list()) {
      if (role.aggregationRule !== undefined) queue.add(role.metadata?.name ?? "");
    }
  };
  roles.subscribe({ put: enqueueAggregated, delete: enqueueAggregated });
  await waitForAbort(signal);
}

/** By server-side apply, as in Kubernetes: the controller's field manager owns the rules. */
async function applyRules(
  client: Client,
  name: string,
  rules: readonly PolicyRule[],
  signal: AbortSignal,
): Promise<void> {
  const apiVersion = formatApiVersion(kubernetesGroup(clusterRoleKind.group), clusterRoleKind.version);
  const patch = { apiVersion, kind: clusterRoleKind.kind, metadata: { name }, rules };
  const query = { fieldManager: FIELD_MANAGER, force: true };
  await client.patch(clusterRoleKind, { name }, "apply", patch, { query, signal });
}

/** The rules of the roles that each selector selects, sorted by role name, without duplicates. */
function aggregateRules(
  { metadata, aggregationRule }: ClusterRole,
  roles: Informer<ClusterRole>,
): readonly PolicyRule[] {
  const selectors = (aggregationRule?.clusterRoleSelectors ?? []).map(requirementsOf);
  const others = [...roles.list()]
    .filter((role) => role.metadata?.name !== metadata?.name)
    .sort((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  const selected = selectors.flatMap((selector) =>
    others.filter((role) => matchesLabels(selector, role.metadata?.labels)),
  );
  const rules: PolicyRule[] = [];
  for (const rule of selected.flatMap((role) => role.rules ?? [])) {
    if (!rules.some((existing) => deepEqual(existing, rule))) rules.push(rule);
  }
  return rules;
}
