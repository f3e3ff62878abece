/** A node as the scheduler sees it: what it offers, and what the pods that are on it or on their way take of that. */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { type Amounts, add, amountsOf, podRequests } from "./resources.ts";

export interface NodeInfo {
  readonly node: Node;
  readonly allocatable: Amounts;
  readonly requested: Amounts;
  /** The pods that are there or on their way. */
  readonly pods: readonly Pod[];
  /** `TCP/0.0.0.0/80` of every host port taken. */
  readonly hostPorts: readonly HostPort[];
}

export interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

/** Pods that came to their end take nothing. */
export function takesRoom(pod: Pod): boolean {
  return pod.status?.phase !== "Succeeded" && pod.status?.phase !== "Failed";
}

export function nodeInfo(node: Node, pods: readonly Pod[]): NodeInfo {
  let requested: Amounts = new Map();
  for (const pod of pods) requested = add(requested, podRequests(pod));
  return {
    node,
    allocatable: amountsOf(node.status?.allocatable),
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
