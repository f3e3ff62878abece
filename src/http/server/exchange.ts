/** What HTTP/1.1 and HTTP/2 share: a request over a readable stream, a handler that may fail, headers. */
import type { Readable } from "node:stream";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Handler, Headers, HttpRequest, HttpResponse, Peer } from "../message.ts";
import { errorResponse } from "../respond.ts";
import type { Target } from "./request-target.ts";
import type { RequestTurns } from "./request-turns.ts";
import type { RequestsInFlight } from "./requests-in-flight.ts";
import { AbortedStreamError, bodyLength, type StallTimeout } from "./write-body.ts";

export interface ServerContext {
  readonly handler: Handler;
  readonly log: Logger;
  readonly clock: Clock;
  readonly inFlight: RequestsInFlight;
  readonly turns: RequestTurns;
  readonly limits: ListenLimits;
  /** Called when a TLS handshake fails. */
  readonly onHandshakeFailure?: (() => void) | undefined;
  /** Requests may switch protocols over HTTP/1.1. */
  readonly upgrades: boolean;
}

export interface ListenLimits {
  /** All header names and values of a request together. */
  readonly headerBytes: number;
  /** From the start of a connection to its first byte, and from there to the end of its TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headerTimeoutMs: number;
  /** A connection without a request in flight is closed after this. */
  readonly idleTimeoutMs: number;
  /** A response of which the client reads nothing for this long is aborted. */
  readonly stallTimeoutMs: number;
  /** Concurrent requests on one HTTP/2 connection. */
  readonly streamsPerConnection: number;
}

/** A request that creates its body iterator and signal lazily. */
export class IncomingRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Headers;
  readonly rawHeaders: readonly string[];
  readonly peer: Peer;
  readonly upgradable: boolean;
  bodyLength: number | undefined;
  readonly #source: Readable | undefined;
  #controller: AbortController | undefined;
  #aborted = false;
  #onWritten: (() => void) | undefined;

  /** Without a `source` the body is empty. */
  constructor(
    method: string,
    target: Target,
    headers: { readonly plain: Headers; readonly raw: readonly string[] },
    peer: Peer,
    source: Readable | undefined,
    upgradable = false,
  ) {
    this.method = method;
    this.path = target.path;
    this.query = target.query;
    this.headers = headers.plain;
    this.rawHeaders = headers.raw;
    this.peer = peer;
    this.upgradable = upgradable;
    this.#source = source;
  }

  whenWritten(callback: () => void): void {
    const before = this.#onWritten;
    this.#onWritten =
      before === undefined
        ? callback
        : () => {
            before();
            callback();
          };
  }

  /** The response is written, or will not be. */
  markWritten(): void {
    const callback = this.#onWritten;
    this.#onWritten = undefined;
    callback?.();
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#source === undefined ? emptyBody() : this.#read(this.#source);
  }

  readChunks(accept: (chunk: Uint8Array) => boolean): Promise<void> {
    const source = this.#source;
    if (source === undefined) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        source.off("data", onData).off("end", onEnd).off("error", onBroken).off("close", onBroken);
      };
      const onData = (chunk: Uint8Array): void => {
        if (accept(chunk)) return;
        stop();
        source.pause();
        resolve();
      };
      const onEnd = (): void => {
        stop();
        resolve();
      };
      const onBroken = (error: unknown): void => {
        stop();
        this.abort();
        reject(error instanceof Error ? error : new Error("The request's stream was closed before its end"));
      };
      if (source.readableEnded) resolve();
      else if (source.destroyed) onBroken(source.errored);
      else source.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken);
    });
  }

  get connection(): Readable | undefined {
    return this.upgradable ? this.#source : undefined;
  }

  /** A client that leaves breaks the stream before its connection reports the end. */
  #read(source: Readable): AsyncIterable<Uint8Array> {
    // Leaving the loop early must not destroy the stream: the response is sent over it.
    const chunks: AsyncIterator<Uint8Array> = source.iterator({ destroyOnReturn: false });
    const fail = (error: unknown): never => {
      this.abort();
      throw error;
    };
    // An async generator around the iterator would create several promises more for each chunk.
    const iterator = { next: () => chunks.next().catch(fail), return: () => chunks.return!() };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(clientGoneError());
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#aborted;
  }

  /** The connection or stream ended before the response. */
  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#controller?.abort(clientGoneError());
  }
}

export function callHandler(context: ServerContext, request: HttpRequest): Promise<HttpResponse> {
  return context.handler(request).catch((error: unknown) => {
    const response = errorResponse(error);
    if (response.status >= 500 && !request.signal.aborted) logFailure(context, request, error);
    return response;
  });
}

/** Logs why a response was not sent, or not to its end. */
export function logFailure(context: ServerContext, request: HttpRequest, error: unknown): void {
  if (error instanceof AbortedStreamError || isPrematureClose(error)) {
    context.log.v(2)?.info("Aborted a response", { reason: error.message, path: request.path });
    return;
  }
  context.log.error("Failed to send a response", error, { method: request.method, path: request.path });
}

/**
 * The stream that a response is read from was closed before its end, as that of an exec or a watch is after the client
 * has ended its side.
 */
function isPrematureClose(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE";
}

export function stallTimeout({ clock, limits }: ServerContext): StallTimeout {
  return { clock, stallTimeoutMs: limits.stallTimeoutMs };
}

/** Headers of one connection, which are never sent with a response. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is there to find them.
const UNSENDABLE = /[\0-\x08\x0a-\x1f\x7f]/;

/** The handler's headers without hop-by-hop ones, with `content-length` where the length is known. */
export function outgoingHeaders(response: HttpResponse): Record<string, string | string[] | number> {
  const headers: Record<string, string | string[] | number> = {};
  for (const name in response.headers) {
    if (HOP_BY_HOP.has(name)) continue;
    const value = response.headers[name]!;
    // node:http refuses such a value; node:http2 would send part of it.
    if (typeof value === "string" ? UNSENDABLE.test(value) : value.some((each) => UNSENDABLE.test(each))) {
      throw new Error(`Cannot send header ${name}: its value has a control character`);
    }
    headers[name] = typeof value === "string" ? value : [...value];
  }
  if (mayHaveBody(response.status)) {
    const length = bodyLength(response.body);
    if (length !== undefined) headers["content-length"] = length;
  }
  return headers;
}

/** Whether the response requests to close the connection after the pending responses. */
export function endsConnection({ headers }: HttpResponse): boolean {
  return headers.connection === "close";
}

export function mayHaveBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 205 && status !== 304;
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

function clientGoneError(): Error {
  return new DOMException("The client disconnected", "AbortError");
}
