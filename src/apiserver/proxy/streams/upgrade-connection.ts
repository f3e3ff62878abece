/** Forwards requests that switch protocols, with kube-apiserver's errors. */
import type { Agent as HttpAgent } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import { StatusError } from "../../../api/status.ts";
import { isTokenProtocol } from "../../../auth/authn/token/bearer-token.ts";
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { UpgradeError } from "../../../http/upgrade/connect-upgrade.ts";
import { forwardUpgrade, upgradeRequestHeaders } from "../../../http/upgrade/forward-upgrade.ts";
import { offeredProtocols } from "../../../http/websocket/handshake.ts";
import { traceHeaders } from "../../../tracing/span.ts";

export interface UpgradeDestination {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** Percent-encoded, with the query. */
  readonly path: string;
  readonly agent?: HttpAgent | HttpsAgent | undefined;
  /** The request's headers when absent. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
}

/** Throws a `StatusError` 500 when the server cannot be reached, or neither switches protocols nor fails. */
export async function upgradeConnection(
  request: HttpRequest,
  to: UpgradeDestination,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { method } = request;
  try {
    return await forwardUpgrade(request, { ...to, method, headers: to.headers ?? forwardedHeaders(request), signal });
  } catch (error) {
    throw error instanceof UpgradeError ? dialError(error) : error;
  }
}

/** Kubernetes' errors of a proxy have no reason. */
export function dialError(error: UpgradeError): StatusError {
  const message = error.isResponse ? error.message : `error dialing backend: ${error.message}`;
  return new StatusError(500, "", message, { cause: error });
}

/** Drops the client's credentials and the identity headers of an authenticating proxy. */
export function forwardedHeaders(request: HttpRequest): Record<string, string | readonly string[]> {
  const { "sec-websocket-protocol": _, ...all } = upgradeRequestHeaders(request);
  const headers = Object.fromEntries(
    Object.entries(all).filter(([name]) => !name.startsWith("impersonate-") && !name.startsWith("x-remote-")),
  );
  const protocols = offeredProtocols(request).filter((name) => !isTokenProtocol(name));
  // The span of this server replaces the client's.
  Object.assign(headers, traceHeaders());
  return protocols.length === 0 ? headers : { ...headers, "sec-websocket-protocol": protocols.join(", ") };
}
