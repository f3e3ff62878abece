/** Accessors and predicates of a Pod. */
import type { Container, EphemeralContainer } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";

export type ContainerRole = "containers" | "initContainers" | "ephemeralContainers";

/** A container of the spec with the list that holds it. */
export interface PodContainer {
  readonly spec: Container;
  readonly role: ContainerRole;
}

export function podUid(pod: Pod): string {
  return pod.metadata?.uid ?? "";
}

export function podName(pod: Pod): string {
  return pod.metadata?.name ?? "";
}

export function podNamespace(pod: Pod): string {
  return pod.metadata?.namespace ?? "default";
}

/** `web_default(8f…)`, as Kubernetes writes a pod in its messages. */
export function podFullName(pod: Pod): string {
  return `${podName(pod)}_${podNamespace(pod)}(${podUid(pod)})`;
}

export function initContainers(pod: Pod): readonly Container[] {
  return pod.spec?.initContainers ?? [];
}

export function appContainers(pod: Pod): readonly Container[] {
  return pod.spec?.containers ?? [];
}

/** Debug containers of a running pod; started once, never restarted. */
export function ephemeralContainers(pod: Pod): readonly EphemeralContainer[] {
  return pod.spec?.ephemeralContainers ?? [];
}

export function allContainers(pod: Pod): readonly PodContainer[] {
  return [
    ...initContainers(pod).map((spec) => ({ spec, role: "initContainers" as const })),
    ...appContainers(pod).map((spec) => ({ spec, role: "containers" as const })),
    ...ephemeralContainers(pod).map((spec) => ({ spec, role: "ephemeralContainers" as const })),
  ];
}

/** An init container that keeps running beside the pod's containers. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}

export function restartPolicy(pod: Pod): "Always" | "OnFailure" | "Never" {
  return pod.spec?.restartPolicy ?? "Always";
}

export function isDeleted(pod: Pod): boolean {
  return pod.metadata?.deletionTimestamp !== undefined;
}

export function isTerminal(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

/** The grace period: of the delete request, else of the spec. */
export function graceSeconds(pod: Pod): number {
  return pod.metadata?.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 30;
}

/** The source of the pod; absent for the API server. */
const configSourceAnnotation = "kubernetes.io/config.source";

export function isStatic(pod: Pod): boolean {
  const source = pod.metadata?.annotations?.[configSourceAnnotation];
  return source !== undefined && source !== "api";
}

const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** The node requires the pod; it may preempt others. */
export function isCritical(pod: Pod): boolean {
  return isStatic(pod) || (pod.spec?.priority ?? 0) >= SYSTEM_CRITICAL_PRIORITY;
}
