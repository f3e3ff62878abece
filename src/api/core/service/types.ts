/** Properties that follow from the type of a service: cluster IPs, node ports, policies. */
import type { Service, ServiceSpec } from "./schema.ts";

/** The cluster IP of a headless service. */
export const HEADLESS = "None";

export function specOf({ spec }: Service): ServiceSpec {
  return spec ?? {};
}

export function isHeadless({ clusterIPs = [] }: ServiceSpec): boolean {
  return clusterIPs.length === 1 && clusterIPs[0] === HEADLESS;
}

/** "None" counts as a cluster IP. */
export function needsClusterIP({ type }: ServiceSpec): boolean {
  return type !== "ExternalName";
}

export function mayHaveNodePorts({ type }: ServiceSpec): boolean {
  return type === "NodePort" || type === "LoadBalancer";
}

/** Load balancers allocate node ports unless `allocateLoadBalancerNodePorts` is false; node ports that are set stay. */
export function allocatesNodePorts({ type, allocateLoadBalancerNodePorts }: ServiceSpec): boolean {
  return type === "NodePort" || (type === "LoadBalancer" && allocateLoadBalancerNodePorts !== false);
}

export function needsHealthCheck({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === "LoadBalancer" && externalTrafficPolicy === "Local";
}

export function isExternallyAccessible({ type, externalIPs = [] }: ServiceSpec): boolean {
  return type === "LoadBalancer" || type === "NodePort" || (type === "ClusterIP" && externalIPs.length > 0);
}

export function sameStrings(a: readonly string[] = [], b: readonly string[] = []): boolean {
  return a.length === b.length && a.every((text, i) => text === b[i]);
}

export function sameClusterIPs(a: ServiceSpec, b: ServiceSpec): boolean {
  return (a.clusterIP ?? "") === (b.clusterIP ?? "") && sameStrings(a.clusterIPs, b.clusterIPs);
}

/** The node ports of a service, without healthCheckNodePort. */
export function nodePortsOf({ ports = [] }: ServiceSpec): readonly number[] {
  return ports.map(({ nodePort = 0 }) => nodePort).filter((port) => port !== 0);
}
