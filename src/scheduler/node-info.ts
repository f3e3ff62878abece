/** A node with its allocatable resources and those that its pods request. */
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import { add, parseAmounts, podRequests, type ResourceAmounts } from "./resources.ts";

export interface NodeInfo {
  readonly node: Node;
  readonly allocatable: ResourceAmounts;
  readonly requested: ResourceAmounts;
  /** Pods that are bound to the node or being bound. */
  readonly pods: readonly Pod[];
  /** The host ports in use. */
  readonly hostPorts: readonly HostPort[];
}

export interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

/** Terminated pods use no resources. */
export function usesResources(pod: Pod): boolean {
  return pod.status?.phase !== "Succeeded" && pod.status?.phase !== "Failed";
}

export function createNodeInfo(node: Node, pods: readonly Pod[]): NodeInfo {
  let requested: ResourceAmounts = new Map();
  for (const pod of pods) requested = add(requested, podRequests(pod));
  return {
    node,
    allocatable: parseAmounts(node.status?.allocatable),
    requested,
    pods,
    hostPorts: pods.flatMap(hostPortsOf),
  };
}

export function hostPortsOf(pod: Pod): readonly HostPort[] {
  return [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({ protocol: port.protocol ?? "TCP", ip: port.hostIP || "0.0.0.0", port: port.hostPort ?? 0 })),
  );
}
