/** Records Kubernetes Events about pods. */
import type { Pod } from "../../api/core/pod/schema.ts";
import type { RecordOptions } from "../../client/events/event-recorder.ts";
import type { ContainerRole } from "./pod-fields.ts";

export type EventType = "Normal" | "Warning";

/** Events are best effort: recording neither fails nor waits. */
export interface PodEventRecorder {
  recordPodEvent(pod: Pod, type: EventType, reason: string, message: string, options?: RecordOptions): void;
  recordContainerEvent(
    pod: Pod,
    container: { readonly role: ContainerRole; readonly name: string },
    type: EventType,
    reason: string,
    message: string,
  ): void;
}
