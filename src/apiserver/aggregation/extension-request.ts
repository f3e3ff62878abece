/** Requests of this server itself to extension servers: availability checks, discovery and OpenAPI documents. */
import type { IncomingHttpHeaders } from "node:http";
import { type Agent, request } from "node:https";
import type { UserInfo } from "../../auth/user.ts";
import { toOutgoingHeaders } from "../../http/message.ts";
import { ByteChunks } from "../../std/collections/byte-chunks.ts";
import type { Clock } from "../../std/time/clock.ts";
import { identityHeaders } from "./proxy-headers.ts";
import { formatHostPort, type HostPort } from "./service-resolver.ts";

export interface ExtensionRequest {
  readonly address: HostPort;
  readonly agent: Agent;
  readonly path: string;
  readonly user: UserInfo;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The deadline for the whole response. */
  readonly timeoutMs: number;
  /** A longer response is an error; 0: only the headers are read. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export interface ExtensionResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The response did not arrive in time. */
export class ExtensionTimeout extends Error {
  override readonly name = "ExtensionTimeout";
}

/** Redirects are not followed. Rejects with an `ExtensionTimeout`, or the error of the connection. */
export function getFromExtension(options: ExtensionRequest, clock: Clock): Promise<ExtensionResponse> {
  const { address, agent, path, user, timeoutMs, bytesMax, signal } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request({
      method: "GET",
      host: address.host,
      port: address.port,
      path,
      agent,
      signal,
      headers: { host: formatHostPort(address), ...options.headers, ...toOutgoingHeaders(identityHeaders(user, true)) },
    });
    const timer = clock.timer(timeoutMs, () => outgoing.destroy(new ExtensionTimeout("context deadline exceeded")));
    outgoing.on("error", reject);
    outgoing.on("close", () => timer.cancel());
    outgoing.on("response", (response) => {
      const { statusCode = 0, headers } = response;
      const chunks = new ByteChunks();
      const finish = (): void => resolve({ status: statusCode, headers, body: chunks.concat() });
      response.on("error", reject);
      if (bytesMax === 0) {
        finish();
        response.destroy();
        return;
      }
      response.on("data", (chunk: Buffer) => {
        chunks.add(chunk);
        if (chunks.length > bytesMax) outgoing.destroy(new Error(`the response is longer than ${bytesMax} bytes`));
      });
      response.on("end", finish);
      response.on("aborted", () => reject(new Error("unexpected EOF")));
    });
    outgoing.end();
  });
}
