/** Which port of the nodes belongs to which service: the ports of load balancers are ports of all nodes. */
import type { Node } from "../../api/core/node/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Service } from "../../api/core/service/schema.ts";

/** `80/TCP` → who uses it, as in a message. */
export type PortClaims = Map<string, string>;

export function portKey(port: number, protocol = "TCP"): string {
  return `${port}/${protocol}`;
}

/** The ports that are taken before any load balancer gets one. */
export function reservedPorts(
  services: Iterable<Service>,
  nodes: Iterable<Node>,
  hostPorts: Iterable<readonly [pod: string, ports: readonly string[]]>,
): PortClaims {
  const claims: PortClaims = new Map();
  for (const { status } of nodes) {
    const port = status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
    if (port > 0) claims.set(portKey(port), "the node's agent");
  }
  for (const [pod, ports] of hostPorts) for (const port of ports) claims.set(port, `Pod ${pod}`);
  for (const { metadata, spec } of services) {
    for (const { nodePort = 0, protocol } of spec?.ports ?? []) {
      if (nodePort > 0) claims.set(portKey(nodePort, protocol), `the node port of Service ${nameOf(metadata)}`);
    }
    if (metadata?.namespace !== "default" || metadata.name !== "kubernetes") continue;
    // The API server itself listens at the target port of its service.
    for (const { targetPort, protocol } of spec?.ports ?? []) {
      if (typeof targetPort === "number") claims.set(portKey(targetPort, protocol), "the API server");
    }
  }
  return claims;
}

export function nameOf(metadata: Service["metadata"]): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

/** Takes all ports of the service, or none; returns why it gets none. */
export function claimPorts(claims: PortClaims, { metadata, spec }: Service): string | undefined {
  const own = `Service ${nameOf(metadata)}`;
  const wanted = (spec?.ports ?? []).map(({ port, protocol }) => portKey(port, protocol));
  for (const key of wanted) {
    const user = claims.get(key);
    if (user !== undefined && user !== own && user !== `the node port of ${own}`) {
      return `port ${key} of the nodes is used by ${user}`;
    }
  }
  for (const key of wanted) claims.set(key, own);
  return undefined;
}

/** The ports of the node that a running pod uses. */
export function hostPortsOf({ spec, status }: Pod): readonly string[] {
  if (status?.phase === "Succeeded" || status?.phase === "Failed" || (spec?.nodeName ?? "") === "") return [];
  return (spec?.containers ?? []).flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort = 0, protocol }) => (hostPort > 0 ? [portKey(hostPort, protocol)] : [])),
  );
}
