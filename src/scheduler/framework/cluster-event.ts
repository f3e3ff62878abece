/** Changes of the cluster that may make a rejected pod schedulable, and what plugins say of them. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";

/** `AssignedPod` and `UnschedulablePod` are pods with and without a node. */
export type EventResource =
  | "AssignedPod"
  | "UnschedulablePod"
  | "Node"
  | "PersistentVolume"
  | "PersistentVolumeClaim"
  | "StorageClass"
  | "CSINode"
  | "CSIDriver"
  | "CSIStorageCapacity"
  | "VolumeAttachment"
  | "ResourceClaim"
  | "ResourceSlice"
  | "DeviceClass";

export type EventAction =
  | "Add"
  | "Delete"
  | "Update"
  | "UpdateNodeAllocatable"
  | "UpdateNodeLabel"
  | "UpdateNodeTaint"
  | "UpdateNodeCondition"
  | "UpdateNodeAnnotation"
  | "UpdatePodLabel"
  | "UpdatePodScaleDown"
  | "UpdatePodToleration"
  | "UpdatePodSchedulingGatesEliminated"
  | "UpdatePodGeneratedResourceClaim"
  | "UpdatePodOther";

export interface ClusterEvent {
  readonly resource: EventResource;
  readonly action: EventAction;
  /** Undefined for an addition. */
  readonly before: ApiObject | undefined;
  /** Undefined for a deletion. */
  readonly after: ApiObject | undefined;
}

/** Registered for both kinds of pods under the name `Pod`. */
export interface EventRegistration {
  readonly resource: EventResource | "Pod";
  readonly actions: readonly EventAction[];
  /** Whether the event may make the pod schedulable, which the plugin rejected; true when absent. */
  readonly hint?: ((pod: Pod, event: ClusterEvent) => boolean) | undefined;
}

export function registrationMatches({ resource, actions }: EventRegistration, event: ClusterEvent): boolean {
  const isPod = event.resource === "AssignedPod" || event.resource === "UnschedulablePod";
  if (resource !== event.resource && !(resource === "Pod" && isPod)) return false;
  return actions.includes(event.action);
}

/** In metrics. */
export function labelOf({ resource, action }: Pick<ClusterEvent, "resource" | "action">): string {
  return `${resource}${action === "UpdatePodOther" ? "Update" : action}`;
}
