/**
 * HTTP as values. The server turns sockets into an `HttpRequest` and writes the `HttpResponse` it is given back;
 * nothing behind this seam meets a socket.
 */

/** Header names in lower case. Repeated headers are joined with ", " (cookies with "; "). */
export type Headers = Readonly<Record<string, string>>;

/** Those of an answer: each of several values is a header of its own. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Decoded by the consumer, never here: `/api/v1/namespaces/a%2Fb`. Without the query. */
  readonly path: string;
  /** Without the question mark; empty when absent. */
  readonly query: string;
  readonly headers: Headers;
  /** Names and values by turns, as they came over a connection: what was sent twice is there twice. */
  readonly rawHeaders?: readonly string[] | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  readonly peer: Peer;
  /** Aborts when the client goes away or the server gives the request up. */
  readonly signal: AbortSignal;
}

/** Every value of a header, by lower-case name, as it was sent; of a request made in this process, split at ", ". */
export function headerValues({ headers, rawHeaders }: HttpRequest, name: string): readonly string[] {
  const joined = headers[name];
  if (joined === undefined) return [];
  if (rawHeaders === undefined) return joined.split(", ");
  // Not repeated, as most are.
  if (!joined.includes(",")) return [joined];
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === name) values.push(rawHeaders[at + 1]!);
  }
  return values;
}

/** Who is at the other end of the connection. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  readonly encrypted: boolean;
  /** The client certificate chain in DER, leaf first; empty when none was offered. Not yet verified. */
  readonly certificates: readonly Uint8Array[];
  /** `local`: a component of this process. */
  readonly protocol: "h2" | "http/1.1" | "local";
}

export interface HttpResponse {
  readonly status: number;
  /**
   * `connection: close` ends the connection when its requests have been answered, over HTTP/2 as well (GOAWAY); other
   * headers of connections are not sent.
   */
  readonly headers: ResponseHeaders;
  /** Pieces are written in order with backpressure; an async source that throws resets the stream. */
  readonly body: Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;
}

export type Handler = (request: HttpRequest) => Promise<HttpResponse>;
export type Filter = (next: Handler) => Handler;
