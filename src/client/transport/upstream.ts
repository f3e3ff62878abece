/** A connection of a transport to a server. */
import type { Headers, HttpResponse } from "../../http/message.ts";

export interface OutgoingRequest {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface Upstream {
  /** Whether it accepts another request. */
  readonly usable: boolean;
  /** False when it is closed and all requests have ended. */
  readonly alive: boolean;
  /** Rejects with `Unsent` when the server cannot have acted on the request. */
  send(outgoing: OutgoingRequest): Promise<HttpResponse>;
  /** Closes when the requests in flight have ended. */
  retire(): void;
  /** Closes immediately; requests in flight fail. */
  destroy(): void;
}

/** The connection closed or the server refused the request before it had an effect: it can be retried. */
export class NotSentError extends Error {
  override readonly name = "Unsent";
}
