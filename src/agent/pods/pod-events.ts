/** What the agent says about a pod, as Kubernetes Events. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ContainerRole } from "./pod-fields.ts";

export type EventType = "Normal" | "Warning";

/** Never fails and never waits: events are best effort. */
export interface PodEventRecorder {
  recordPodEvent(pod: Pod, type: EventType, reason: string, message: string): void;
  recordContainerEvent(
    pod: Pod,
    container: { readonly role: ContainerRole; readonly name: string },
    type: EventType,
    reason: string,
    message: string,
  ): void;
}
