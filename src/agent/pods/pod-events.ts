/** What the agent says about a pod, as Kubernetes Events. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ContainerRole } from "./pod-fields.ts";

export type EventType = "Normal" | "Warning";

/** Never fails and never waits: events are best effort. */
export interface PodEvents {
  pod(pod: Pod, type: EventType, reason: string, message: string): void;
  container(
    pod: Pod,
    container: { readonly role: ContainerRole; readonly name: string },
    type: EventType,
    reason: string,
    message: string,
  ): void;
}
