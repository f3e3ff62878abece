/** Gives cluster roles with an `aggregationRule` the rules of all cluster roles that it selects. */
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import type { PolicyRule } from "../../api/rbac/policy-rule.ts";
import { StatusError } from "../../api/status.ts";
import { type Informer, startInformer } from "../../client/informer/informer.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { WorkQueue } from "../../std/async/work-queue.ts";
import type { ControllerDeps } from "../controller.ts";

export async function runClusterRoleAggregation(deps: ControllerDeps): Promise<void> {
  const { client, clock, random, log, signal } = deps;
  await using roles = startInformer({ client, clock, random, log, kind: clusterRoleKind }, signal);
  await roles.synced.catch(() => {});
  await using queue = new WorkQueue({
    clock,
    random,
    metrics: deps.queue,
    concurrency: 1,
    backoff: { initialMs: 500, maxMs: 60_000, jitter: 0.1 },
    work: async (name, stopping) => {
      const role = roles.get(name);
      if (role?.aggregationRule === undefined) return;
      const rules = gathered(role, roles);
      if (deepEqual(rules, role.rules ?? [])) return;
      try {
        await client.update(clusterRoleKind, { ...role, rules }, stopping);
      } catch (error) {
        // Gone, or changed meanwhile: the informer will tell.
        if (!(error instanceof StatusError) || (error.status.code !== 404 && error.status.code !== 409)) throw error;
        if (error.status.code === 409) queue.add(name);
      }
    },
    onError: (name, error) => log.error("Cannot gather the rules of a cluster role; trying again", error, { name }),
  });
  // Any role may be gathered by any other.
  const changed = (): void => {
    for (const role of roles.list()) {
      if (role.aggregationRule !== undefined) queue.add(role.metadata?.name ?? "");
    }
  };
  roles.subscribe({ put: changed, delete: changed });
  await waitForAbort(signal);
}

/** In the order of names, each rule once. */
function gathered({ metadata, aggregationRule }: ClusterRole, roles: Informer<ClusterRole>): readonly PolicyRule[] {
  const selectors = (aggregationRule?.clusterRoleSelectors ?? []).map(requirementsOf);
  const chosen = [...roles.list()]
    .filter((role) => role.metadata?.name !== metadata?.name)
    .filter((role) => selectors.some((selector) => matchesLabels(selector, role.metadata?.labels)))
    .sort((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  const rules: PolicyRule[] = [];
  for (const rule of chosen.flatMap((role) => role.rules ?? [])) {
    if (!rules.some((known) => deepEqual(known, rule))) rules.push(rule);
  }
  return rules;
}
