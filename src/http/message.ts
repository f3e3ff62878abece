/**
 * HTTP as values. The server turns a socket's bytes into an `HttpRequest`, calls a `Handler` and writes the
 * `HttpResponse`; handlers have no access to sockets.
 */
import type { Readable } from "node:stream";

/** Header names in lower case. Repeated headers are joined with ", " (cookies with "; "). */
export type Headers = Readonly<Record<string, string>>;

/** Headers of a response: each value of an array is a header of its own. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

/** The headers as node:http takes them, whose types are not read-only. */
export function toOutgoingHeaders(headers: ResponseHeaders): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
}

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Percent-encoded, without the query: `/api/v1/namespaces/a%2Fb`. */
  readonly path: string;
  /** Without the question mark; empty when absent. */
  readonly query: string;
  readonly headers: Headers;
  /** Names and values by turns, as received over a connection: repeated headers are repeated. */
  readonly rawHeaders?: readonly string[] | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** Set by `readBody`. */
  bodyLength?: number | undefined;
  /**
   * Reads `body` without the steps of an iterator, which cost several promises: passes each chunk to `accept` until it
   * returns false. Rejects as the iterator does. Absent in requests of this process.
   */
  readChunks?(accept: (chunk: Uint8Array) => boolean): Promise<void>;
  /** The connection can switch to the protocol of the `upgrade` header: see `HttpResponse`. */
  readonly upgradable?: boolean | undefined;
  /** What `body` reads, of an upgradable request over a connection: to copy it without the steps of an iterator. */
  readonly connection?: Readable | undefined;
  readonly peer: Peer;
  /** Aborts when the client disconnects or the server gives the request up. */
  readonly signal: AbortSignal;
  /** Whether `signal` is aborted, without creating it. Absent in requests of this process. */
  readonly isAborted?: boolean | undefined;
  /** Calls `callback` when the response is written, or will not be. Absent in requests of this process. */
  whenWritten?(callback: () => void): void;
}

export function isAborted(request: HttpRequest): boolean {
  return request.isAborted ?? request.signal.aborted;
}

/** Every value of a header, by lower-case name, as sent; in a request made in this process, split at ", ". */
export function headerValues({ headers, rawHeaders }: HttpRequest, name: string): readonly string[] {
  const joined = headers[name];
  if (joined === undefined) return [];
  if (rawHeaders === undefined) return joined.split(", ");
  // The common case: not repeated.
  if (!joined.includes(",")) return [joined];
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.toLowerCase() === name) values.push(rawHeaders[index + 1]!);
  }
  return values;
}

/**
 * The value of a header as text. Node.js reads each byte of a header as a character, which proxies pass on as it is;
 * clients send UTF-8.
 */
export function headerText(request: HttpRequest, name: string): string | undefined {
  const value = request.headers[name];
  return value === undefined ? undefined : decodeValue(request, value);
}

/** `headerValues()` as text. */
export function headerTexts(request: HttpRequest, name: string): readonly string[] {
  return headerValues(request, name).map((value) => decodeValue(request, value));
}

function decodeValue({ rawHeaders }: HttpRequest, value: string): string {
  const isText = rawHeaders === undefined || !NOT_ASCII.test(value);
  return isText ? value : Buffer.from(value, "latin1").toString("utf8");
}

const NOT_ASCII = /[\u0080-\uffff]/;

/** The other end of the connection. */
export interface Peer {
  readonly address: string;
  readonly port: number;
  readonly encrypted: boolean;
  /** The client certificate chain in DER, leaf first; empty when the client sent none. Not verified yet. */
  readonly certificates: readonly Uint8Array[];
  /** `local`: a component of this process. */
  readonly protocol: "h2" | "http/1.1" | "local";
}

export interface HttpResponse {
  /**
   * 101 switches the protocol of an upgradable request to that of the `upgrade` header: `body` is what the connection
   * sends from then on, the request's body what it receives.
   */
  readonly status: number;
  /**
   * `connection: close` closes the connection after its pending responses, over HTTP/2 as well (GOAWAY); other
   * hop-by-hop headers are not sent.
   */
  readonly headers: ResponseHeaders;
  /** Chunks are written in order with backpressure; an async iterable that throws resets the stream. */
  readonly body: Uint8Array | readonly Uint8Array[] | AsyncIterable<Uint8Array>;
  /** Set for a stream that ends by itself: a shutdown waits for it instead of ending it, and it may be compressed. */
  readonly finite?: true | undefined;
  /** Set for a stream whose end means that it is complete, such as a log: a shutdown resets it instead of ending it. */
  readonly resetAtShutdown?: true | undefined;
  /** Set for refusals to switch protocols that are sent as they are received: filters add no headers. */
  readonly asReceived?: true | undefined;
}

export type Handler = (request: HttpRequest) => Promise<HttpResponse>;
export type Filter = (next: Handler) => Handler;
