/**
 * `/connections`: switches to a connection that carries further ones, for an API server with many open streams. Each of
 * their requests is authenticated and authorized as one of its own connection, with the certificates of the shared one.
 */
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse, Peer } from "../../http/message.ts";
import { SHARED_PROTOCOL, serveSharedConnection } from "../../http/tunnel/shared-connection.ts";
import { SwitchedSocket } from "../../http/tunnel/switched-socket.ts";
import { goErrorResponse, methodNotAllowed } from "./go-responses.ts";

/** Serves a connection of this client. */
export type AcceptConnection = (connection: Duplex, peer: Peer) => void;

/** Clients of shared connections, which cannot open further ones. */
const sharedPeers = new WeakSet<Peer>();

export function serveSharedConnections(accept: AcceptConnection, request: HttpRequest): HttpResponse {
  if (request.method !== "GET") return methodNotAllowed(["GET"]);
  if (request.upgradable !== true || request.headers.upgrade !== SHARED_PROTOCOL || sharedPeers.has(request.peer)) {
    return goErrorResponse(400, `Upgrade request required, to ${SHARED_PROTOCOL}`);
  }
  const socket = new SwitchedSocket(request.body);
  const peer: Peer = { ...request.peer };
  sharedPeers.add(peer);
  serveSharedConnection(socket, (connection) => accept(connection, peer));
  return { status: 101, headers: { upgrade: SHARED_PROTOCOL }, body: socket.sent };
}
