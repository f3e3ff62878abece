/** One way to a server: what a transport sends its requests through. */
import type { Headers, HttpResponse } from "../../http/message.ts";

export interface OutgoingRequest {
  readonly method: string;
  /** With the query. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface Upstream {
  /** Whether another request may be sent through it. */
  readonly usable: boolean;
  /** False once every request in flight has ended and no more can come. */
  readonly alive: boolean;
  /** Rejects with `Unsent` when the server cannot have acted on the request. */
  send(outgoing: OutgoingRequest): Promise<HttpResponse>;
  /** Lets requests in flight end, then closes. */
  retire(): void;
  /** Closes at once; requests in flight fail. */
  destroy(): void;
}

/** The connection was gone, or the server refused, before the request had an effect: it may be sent again. */
export class NotSentError extends Error {
  override readonly name = "Unsent";
}

export function joinHeaders(
  headers: Readonly<Record<string, string | readonly string[] | number | undefined>>,
): Headers {
  const plain: Record<string, string> = Object.create(null);
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined && !name.startsWith(":"))
      plain[name] = Array.isArray(value) ? value.join(", ") : String(value);
  }
  return plain;
}
