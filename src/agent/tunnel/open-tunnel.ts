/** Opens the connection of the agent's tunnel to the API server. */
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { tunnelPath } from "../../api/core/node/tunnel.ts";
import type { ServerCredentials } from "../../client/transport/credentials.ts";
import { tlsOptions } from "../../client/transport/dial.ts";
import { TUNNEL_PROTOCOL } from "../../http/tunnel/tunnel-session.ts";
import type { Clock } from "../../std/time/clock.ts";

/** Until the API server has switched protocols. */
const OPEN_MS_MAX = 30_000;
const REFUSAL_CHARACTERS_MAX = 1_024;

/** Rejects with the hop that broke: the connection, or the API server's refusal with its message. */
export async function openTunnel(
  nodeName: string,
  { server, token, ...identity }: ServerCredentials,
  clock: Pick<Clock, "timer">,
  signal: AbortSignal,
): Promise<Duplex> {
  const url = new URL(server);
  const bearer = typeof token === "function" ? await token() : token;
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const outgoing = request({
    ...tlsOptions(url, identity),
    agent: false,
    signal,
    path: `${url.pathname.replace(/\/+$/, "")}${tunnelPath(nodeName)}`,
    headers: {
      connection: "Upgrade",
      upgrade: TUNNEL_PROTOCOL,
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    },
  });
  const timer = clock.timer(OPEN_MS_MAX, () => outgoing.destroy(new Error(`no answer within ${OPEN_MS_MAX / 1000} s`)));
  outgoing.on("error", (error) => reject(new Error(`cannot connect to ${url.host}: ${error.message}`)));
  outgoing.on("response", (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => {
      if (text.length < REFUSAL_CHARACTERS_MAX) text += chunk;
    });
    response.on("error", reject);
    response.on("end", () => {
      outgoing.destroy();
      reject(new Error(`API server ${url.host} refused the tunnel: ${response.statusCode} ${messageOf(text)}`));
    });
  });
  outgoing.on("upgrade", (_response, socket, head) => {
    socket.setNoDelay(true);
    if (head.length > 0) socket.unshift(head);
    resolve(socket);
  });
  outgoing.end();
  return await promise.finally(() => timer.cancel());
}

/** The message of a Status, or the text. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    if (typeof message === "string") return message;
  } catch {
    // Not every server responds with a Status.
  }
  return text.trim().slice(0, REFUSAL_CHARACTERS_MAX);
}
