/** What changed in a pod or node, of what plugins consider. */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { isAssigned } from "../cache/pod-info.ts";
import { podRequests } from "../cache/pod-requests.ts";
import type { ClusterEvent, EventAction } from "../framework/cluster-event.ts";

export function podChanges(before: Pod, after: Pod): readonly ClusterEvent[] {
  const actions: EventAction[] = [];
  if (!deepEqual(before.metadata?.labels, after.metadata?.labels)) actions.push("UpdatePodLabel");
  if (hasFewerRequests(before, after)) actions.push("UpdatePodScaleDown");
  const gates = (pod: Pod): number => pod.spec?.schedulingGates?.length ?? 0;
  if (gates(before) > 0 && gates(after) === 0) actions.push("UpdatePodSchedulingGatesEliminated");
  if (!deepEqual(before.spec?.tolerations, after.spec?.tolerations)) actions.push("UpdatePodToleration");
  if (!deepEqual(before.status?.resourceClaimStatuses, after.status?.resourceClaimStatuses)) {
    actions.push("UpdatePodGeneratedResourceClaim");
  }
  if (actions.length === 0) actions.push("UpdatePodOther");
  const resource = isAssigned(after) ? "AssignedPod" : "UnschedulablePod";
  return actions.map((action) => ({ resource, action, before, after }));
}

function hasFewerRequests(before: Pod, after: Pod): boolean {
  const containers = (pod: Pod) => [pod.spec?.containers, pod.spec?.resources, pod.status?.containerStatuses];
  if (deepEqual(containers(before), containers(after))) return false;
  const [old, next] = [podRequests(before), podRequests(after)];
  return old.names().some((name) => next.get(name) < old.get(name));
}

/** Heartbeats change nothing of it. */
export function nodeChanges(before: Node, after: Node): readonly ClusterEvent[] {
  const actions: EventAction[] = [];
  const wasCordoned = before.spec?.unschedulable === true;
  const isUncordoned = wasCordoned && after.spec?.unschedulable !== true;
  if (!deepEqual(before.status?.allocatable, after.status?.allocatable)) actions.push("UpdateNodeAllocatable");
  if (!deepEqual(before.metadata?.labels, after.metadata?.labels)) actions.push("UpdateNodeLabel");
  if (isUncordoned || !deepEqual(before.spec?.taints, after.spec?.taints)) actions.push("UpdateNodeTaint");
  if (!deepEqual(conditionsOf(before), conditionsOf(after))) actions.push("UpdateNodeCondition");
  if (!deepEqual(before.metadata?.annotations, after.metadata?.annotations)) actions.push("UpdateNodeAnnotation");
  return actions.map((action) => ({ resource: "Node", action, before, after }));
}

function conditionsOf({ status }: Node): unknown {
  return (status?.conditions ?? []).map(({ type, status: value }) => [type, value]);
}
