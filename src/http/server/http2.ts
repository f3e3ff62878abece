/** HTTP/2: calls the handler with the streams of node:http2. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { joinHeaders } from "../join-headers.ts";
import type { Headers, HttpRequest, HttpResponse, Peer } from "../message.ts";
import { statusResponse } from "../respond.ts";
import { readHandleOf } from "./bulk-reads.ts";
import {
  callHandler,
  endsConnection,
  IncomingRequest,
  logFailure,
  mayHaveBody,
  outgoingHeaders,
  type ServerContext,
  stallTimeout,
} from "./exchange.ts";
import { parseTarget } from "./request-target.ts";
import { ConnectionTurns } from "./request-turns.ts";
import { discardBody, writeBody, writeSmallBody } from "./write-body.ts";

/** Flow control windows: of a connection, and of each stream. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
export const STREAM_WINDOW_BYTES = 256 * 1024;

const STREAM_ID_MAX = 2 ** 31 - 1;
/** Between the two GOAWAY frames, as in Go's server. */
const GOAWAY_GRACE_MS = 1000;

/** One client's connection. */
export class Http2Connection {
  readonly session: ServerHttp2Session;
  readonly #context: ServerContext;
  readonly #peer: Peer;
  /** Running handlers, those included whose stream the client has reset. */
  #running = 0;
  #idleSince: number;
  #goingAway = false;
  readonly #turns: ConnectionTurns;

  constructor(session: ServerHttp2Session, peer: Peer, context: ServerContext) {
    this.session = session;
    this.#peer = peer;
    this.#context = context;
    this.#idleSince = context.clock.monotonic();
    this.#turns = new ConnectionTurns(readHandleOf(session.socket as { readonly _handle?: unknown }));
    session.on("close", () => context.turns.remove(this.#turns));
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("stream", (stream, headers, flags, raw) => this.#accept(stream, headers, flags, raw));
  }

  /** Milliseconds without a request; 0 while one runs. */
  idleMs(now: number): number {
    return this.#running === 0 ? now - this.#idleSince : 0;
  }

  /**
   * Closes an idle connection: gracefully first; the second call, when a request was begun and never finished, at once.
   */
  closeIdle(): void {
    if (this.session.closed) this.session.destroy();
    else this.session.close();
  }

  #accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: readonly string[]): void {
    // An "error" without listener would end the process; the "close" event suffices.
    stream.on("error", ignore);
    const { limits, inFlight, turns } = this.#context;
    // Streams that a client resets do not count for the stream limit, but their handlers run on.
    if (this.#running >= limits.streamsPerConnection * 2) {
      this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#running++;
    inFlight.enter();
    turns.take(this.#turns, () => this.#start(stream, headers, flags, raw));
  }

  #start(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: readonly string[]): void {
    if (stream.destroyed) {
      this.#finish();
      return;
    }
    const method = String(headers[":method"]);
    const target = method === "CONNECT" ? undefined : parseTarget(headers[":path"] as string | undefined);
    const whole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const source = whole ? undefined : stream;
    const both = { plain: plainHeaders(headers), raw };
    const request = new Http2Request(method, target ?? ROOT_TARGET, both, this.#peer, source);
    stream.on("close", () => {
      if (!request.responseWritten) request.abort();
      this.#finishPart(request);
    });
    // An unread body would keep the stream open.
    if (!whole) stream.on("finish", closeRequest);
    const responding =
      target === undefined
        ? Promise.resolve(statusResponse(400, "BadRequest", "the request's target is malformed"))
        : callHandler(this.#context, request);
    void responding.then((response) => this.#respond(stream, request, response));
  }

  #respond(stream: ServerHttp2Stream, request: Http2Request, response: HttpResponse): void {
    const sent = (): void => {
      request.responseWritten = true;
      request.markWritten();
      this.#finishPart(request);
    };
    try {
      const rest = this.#send(stream, response);
      if (rest === undefined) sent();
      else void rest.catch((error: unknown) => this.#fail(stream, request, error)).then(sent);
    } catch (error) {
      this.#fail(stream, request, error);
      sent();
    }
  }

  /** Called twice per request: when the response is written, and when the stream has closed. */
  #finishPart(request: Http2Request): void {
    if (request.finishPart()) this.#finish();
  }

  #finish(): void {
    this.#running--;
    if (this.#running === 0) this.#idleSince = this.#context.clock.monotonic();
    this.#context.inFlight.leave();
  }

  /** Returns a promise when not all could be written at once. Throws for invalid headers. */
  #send(stream: ServerHttp2Stream, response: HttpResponse): Promise<void> | undefined {
    const { body } = response;
    if (stream.destroyed || stream.closed) {
      discardBody(body);
      return undefined;
    }
    let bodiless: boolean;
    try {
      const headers = outgoingHeaders(response);
      bodiless = !mayHaveBody(response.status) || headers["content-length"] === 0;
      headers[":status"] = response.status;
      stream.respond(headers, bodiless ? END_STREAM : undefined);
    } catch (error) {
      discardBody(body);
      throw error;
    }
    if (endsConnection(response)) this.#sendGoAway();
    // For HEAD Node has ended the stream already.
    if (bodiless || stream.writableEnded) discardBody(body);
    else if (!writeSmallBody(stream, body)) return writeBody(stream, body, stallTimeout(this.#context));
    return undefined;
  }

  /**
   * Requests that the client opens another connection. Requests that are on their way are still served: the GOAWAY
   * with the last stream follows after the client has had time to receive the first one.
   */
  #sendGoAway(): void {
    if (this.#goingAway || this.session.closed) return;
    this.#goingAway = true;
    this.session.goaway(constants.NGHTTP2_NO_ERROR, STREAM_ID_MAX);
    const timer = this.#context.clock.timer(GOAWAY_GRACE_MS, () => this.session.close());
    this.session.once("close", () => timer.cancel());
  }

  /** The handler's response could not be sent. */
  #fail(stream: ServerHttp2Stream, request: HttpRequest, error: unknown): void {
    if (stream.destroyed) return;
    if (!request.signal.aborted) logFailure(this.#context, request, error);
    if (stream.headersSent) {
      // With `close` the client would get the end of the stream before the reset.
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    void this.#send(
      stream,
      statusResponse(500, "InternalError", "Internal error occurred: the response could not be written"),
    );
  }
}

/** A request with the state that its connection keeps. */
class Http2Request extends IncomingRequest {
  /** The whole response has been written: a disconnect does not abort the request any more. */
  responseWritten = false;
  #unfinishedParts = 2;

  finishPart(): boolean {
    this.#unfinishedParts--;
    return this.#unfinishedParts === 0;
  }
}

const ROOT_TARGET = { path: "/", query: "" };
const END_STREAM = { endStream: true };

function ignore(): void {}

/** Closes the request side after the response has been written. */
function closeRequest(this: ServerHttp2Stream): void {
  if (!this.destroyed && !this.readableEnded) this.close(constants.NGHTTP2_NO_ERROR);
}

/** `host` as well, if there is only the pseudo-header. */
function plainHeaders(headers: IncomingHttpHeaders): Headers {
  const plain = joinHeaders(headers);
  const authority = headers[":authority"];
  if (plain.host === undefined && typeof authority === "string") plain.host = authority;
  return plain;
}
