/** `GET /api/v1/nodes/NAME/tunnel`, with `Upgrade`: opens the tunnel of a node for its own agent. */
import { TUNNEL_SUBRESOURCE } from "../../api/core/node/tunnel.ts";
import { badRequest, forbidden } from "../../api/status.ts";
import { NODE_USER_PREFIX, NODES } from "../../auth/user.ts";
import { TUNNEL_PROTOCOL } from "../../http/tunnel/tunnel-session.ts";
import type { Route } from "../handlers/routes.ts";
import { userOf } from "../request/request-context.ts";
import type { AgentTunnels } from "./agent-tunnels.ts";

/**
 * Throws a 403 for every user but the node, whatever the authorizers allow: who holds the tunnel of a node receives the
 * requests to its agent.
 */
export function createTunnelHandler(tunnels: AgentTunnels): Route {
  return async (context, { name = "" }) => {
    const user = userOf(context);
    if (name === "" || user.name !== `${NODE_USER_PREFIX}${name}` || !user.groups.includes(NODES)) {
      const subject = { group: "", resource: `nodes/${TUNNEL_SUBRESOURCE}`, name };
      throw forbidden(subject, `only ${NODE_USER_PREFIX}${name} can open the tunnel of this node`);
    }
    const { request } = context;
    if (request.upgradable !== true || request.headers.upgrade !== TUNNEL_PROTOCOL) {
      throw badRequest(`Upgrade request required, to ${TUNNEL_PROTOCOL}`);
    }
    return tunnels.accept(name, request, context.signal);
  };
}
