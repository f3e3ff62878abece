/**
 * SPDY inside the messages of a WebSocket connection, as kubectl 1.31 and later forward ports: the bytes of the
 * messages are those of a SPDY connection to the agent.
 */
import type { Duplex } from "node:stream";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { textResponse } from "../../../http/respond.ts";
import { connectUpgrade, UpgradeError, type UpgradeRefusal } from "../../../http/upgrade/connect-upgrade.ts";
import { waitForDrain } from "../../../http/upgrade/forward-upgrade.ts";
import { readChunks } from "../../../http/upgrade/read-chunks.ts";
import { acceptHeaders, isWebSocketRequest, offeredProtocols } from "../../../http/websocket/handshake.ts";
import { MessageSocket } from "../../../http/websocket/message-socket.ts";
import type { CounterFamily } from "../../../std/metrics/metrics.ts";
import { traceHeaders } from "../../../tracing/span.ts";
import { dialError, forwardedHeaders, type UpgradeDestination } from "./upgrade-connection.ts";

const PREFIX = "SPDY/3.1+";

/** Whether the client offers a tunnel, besides other protocols. */
export function isTunnelRequest(request: HttpRequest): boolean {
  return isWebSocketRequest(request) && offeredProtocols(request).some((name) => name.startsWith(PREFIX));
}

/**
 * Returns the agent's refusal as it is. Throws a `StatusError` 500 when the agent cannot be reached. `requests` counts
 * the responses by status code.
 */
export async function tunnelPortForward(
  request: HttpRequest,
  to: UpgradeDestination,
  signal: AbortSignal,
  requests: CounterFamily,
): Promise<HttpResponse> {
  try {
    const response = await tunnel(request, to, signal);
    requests.with(String(response.status)).inc();
    return response;
  } catch (error) {
    requests.with("500").inc();
    throw error;
  }
}

async function tunnel(request: HttpRequest, to: UpgradeDestination, signal: AbortSignal): Promise<HttpResponse> {
  const protocols = offeredProtocols(request)
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(".k8s.io"))
    .map((name) => name.slice(PREFIX.length));
  if (protocols.length === 0) {
    return goError(400, "unable to upgrade: no tunneling spdy protocols provided");
  }
  const result = await connect(request, { ...to, protocols }, signal);
  if (!("socket" in result)) return { ...result, headers: withoutConnection(result.headers), asReceived: true };
  const { socket, headers } = result;
  const rejection = rejectHandshake(request);
  if (rejection !== undefined) {
    socket.destroy();
    return rejection;
  }
  const protocol = `${PREFIX}${String(headers["x-stream-protocol-version"] ?? "")}`;
  const messages = new MessageSocket(request.connection ?? request.body);
  void copyBoth(messages, socket, signal);
  return {
    status: 101,
    headers: acceptHeaders(request.headers["sec-websocket-key"] ?? "", protocol),
    body: messages.body,
  };
}

async function connect(
  request: HttpRequest,
  { protocols, ...to }: UpgradeDestination & { readonly protocols: readonly string[] },
  signal: AbortSignal,
) {
  const own = Object.entries(forwardedHeaders(request)).filter(([name]) => !name.startsWith("sec-websocket-"));
  const headers = {
    ...Object.fromEntries(own),
    ...traceHeaders(),
    upgrade: "SPDY/3.1",
    "x-stream-protocol-version": protocols,
  };
  try {
    const result = await connectUpgrade({ ...to, method: "POST", headers, signal });
    if ("socket" in result || result.status >= 400) return result;
    throw new UpgradeError(`invalid upgrade response: status code ${result.status}`, { isResponse: true });
  } catch (error) {
    throw error instanceof UpgradeError ? dialError(error) : error;
  }
}

async function copyBoth(messages: MessageSocket, socket: Duplex, signal: AbortSignal): Promise<void> {
  const close = (): void => void socket.destroy();
  signal.addEventListener("abort", close, { once: true });
  const sending = messages
    .run({
      data: async ({ text, data }) => {
        if (text || socket.destroyed) return false;
        if (data.length > 0 && !socket.write(data)) await waitForDrain(socket);
        return true;
      },
    })
    .then(close);
  try {
    await readChunks(socket, async (chunk) => {
      await messages.send("binary", chunk);
      return true;
    });
  } catch {
    // The agent is gone: the client gets a close frame.
  }
  messages.close();
  close();
  signal.removeEventListener("abort", close);
  await sending;
}

/** The checks and texts of gorilla/websocket; undefined for a valid handshake. */
function rejectHandshake({ method, headers }: HttpRequest): HttpResponse | undefined {
  const { "sec-websocket-key": key = "", "sec-websocket-version": version } = headers;
  const refuse = (status: number, text: string): HttpResponse =>
    goError(status, text, { "sec-websocket-version": "13" });
  if (method !== "GET") return refuse(405, "Method Not Allowed");
  if (version !== "13" || Buffer.from(key, "base64").length !== 16) return refuse(400, "Bad Request");
  return undefined;
}

function goError(status: number, message: string, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return textResponse(status, `${message}\n`, { ...headers, "x-content-type-options": "nosniff" });
}

function withoutConnection(headers: UpgradeRefusal["headers"]): UpgradeRefusal["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "connection"));
}
