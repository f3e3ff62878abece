/** The selector of the default spread constraints: what selects the pod together with its replicas. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type Requirement, requirementsOf } from "../../../api/meta/selectors/selector.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { type Selector, selectorOf } from "../../cache/label-match.ts";
import type { Listers } from "../../framework/handle.ts";

/** Matches everything if no service and no controller selects the pod. */
export function defaultSelector(pod: Pod, listers: Listers): Selector {
  const namespace = pod.metadata?.namespace ?? "";
  const labels = pod.metadata?.labels ?? {};
  const merged: Record<string, string> = {};
  for (const { spec } of listers.services.inNamespace(namespace)) {
    const selector = Object.entries(spec?.selector ?? {});
    const selects = selector.length > 0 && selector.every(([key, value]) => getMember(labels, key) === value);
    if (selects) Object.assign(merged, Object.fromEntries(selector));
  }
  const owned = ownerRequirements(pod, namespace, listers, merged);
  return selectorOf([...requirementsOf({ matchLabels: merged }), ...owned]);
}

/** The selector of the pod's controller; that of a ReplicationController is added to `merged`. */
function ownerRequirements(
  pod: Pod,
  namespace: string,
  listers: Listers,
  merged: Record<string, string>,
): readonly Requirement[] {
  const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return [];
  switch (`${owner.apiVersion} ${owner.kind}`) {
    case "v1 ReplicationController":
      Object.assign(merged, listers.replicationControllers.get(owner.name, namespace)?.spec?.selector);
      return [];
    case "apps/v1 ReplicaSet":
      return requirementsOf(listers.replicaSets.get(owner.name, namespace)?.spec?.selector ?? {});
    case "apps/v1 StatefulSet":
      return requirementsOf(listers.statefulSets.get(owner.name, namespace)?.spec?.selector ?? {});
    default:
      return [];
  }
}
