/** What the agent and the API server agree on about the agent's tunnel (`svc agent --tunnel`). */
import type { Node } from "./schema.ts";

/** The condition by which an agent states that the API server reaches it by its tunnel only. */
export const TUNNEL_CONDITION = "TunnelReady";
/** The condition's reason after a start without `--tunnel`: the API server connects to the node's address again. */
export const TUNNEL_DISABLED = "TunnelDisabled";
/** The subresource of nodes that an agent opens its tunnel at. It is no API resource: discovery does not list it. */
export const TUNNEL_SUBRESOURCE = "tunnel";

export function tunnelPath(nodeName: string): string {
  return `/api/v1/nodes/${encodeURIComponent(nodeName)}/${TUNNEL_SUBRESOURCE}`;
}

/** Whether connections to the node's address would reach another machine, or none. */
export function usesTunnel({ status }: Node): boolean {
  const condition = status?.conditions?.find(({ type }) => type === TUNNEL_CONDITION);
  return condition !== undefined && condition.reason !== TUNNEL_DISABLED;
}
