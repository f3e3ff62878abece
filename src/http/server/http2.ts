/** HTTP/2: sessions and streams of node:http2 turned into exchanges. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Headers, HttpRequest, HttpResponse, Peer } from "../message.ts";
import { statusResponse } from "../respond.ts";
import {
  endsConnection,
  IncomingRequest,
  logFailure,
  mayHaveBody,
  outgoingHeaders,
  stallTimeout,
  callHandler,
  type ServerContext,
} from "./exchange.ts";
import { parseTarget } from "./request-target.ts";
import { discardBody, StalledError, writeSmallBody, writeBody } from "./write-body.ts";

/** What a client may send on one connection before we read on; one stream gets the smaller window. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
export const STREAM_WINDOW_BYTES = 256 * 1024;

const STREAM_ID_MAX = 2 ** 31 - 1;
/** What Go's clients and servers give each other. */
const GOAWAY_GRACE_MS = 1000;

/** One client's connection. */
export class Http2Connection {
  readonly session: ServerHttp2Session;
  readonly #context: ServerContext;
  readonly #peer: Peer;
  /** Handlers at work, those included whose stream the client has reset. */
  #running = 0;
  #idleSince: number;
  #goingAway = false;

  constructor(session: ServerHttp2Session, peer: Peer, serving: ServerContext) {
    this.session = session;
    this.#peer = peer;
    this.#context = serving;
    this.#idleSince = serving.clock.monotonic();
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("stream", (stream, headers, flags, raw) => this.#accept(stream, headers, flags, raw));
  }

  /** How long nothing has been asked, in milliseconds. */
  idleMs(now: number): number {
    return this.#running === 0 ? now - this.#idleSince : 0;
  }

  /** Ends a connection that has been idle: politely, then, should a request be begun and never finished, at once. */
  closeIdle(): void {
    if (this.session.closed) this.session.destroy();
    else this.session.close();
  }

  #accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: readonly string[]): void {
    // An unheard "error" would end the process; what matters is that the stream closes.
    stream.on("error", ignore);
    const { limits, inFlight: flight } = this.#context;
    // A client that resets what it asked for starts more than the stream limit counts: end it before work piles up.
    if (this.#running >= limits.streamsPerConnection * 2) {
      this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#running++;
    flight.enter();
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
    // A body that nobody reads would keep the stream open.
    if (!whole) stream.on("finish", closeRequest);
    const answering =
      target === undefined
        ? Promise.resolve(statusResponse(400, "BadRequest", "the request's target is malformed"))
        : callHandler(this.#context, request);
    void answering.then((response) => this.#respond(stream, request, response));
  }

  #respond(stream: ServerHttp2Stream, request: Http2Request, response: HttpResponse): void {
    const sent = (): void => {
      request.responseWritten = true;
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

  /** Called twice a request: when the handler and the writer are done with it, and when its stream has closed. */
  #finishPart(request: Http2Request): void {
    if (!request.finishPart()) return;
    this.#running--;
    if (this.#running === 0) this.#idleSince = this.#context.clock.monotonic();
    this.#context.inFlight.leave();
  }

  /** A promise of what is left to write, where not all could be written at once. Throws what is wrong with headers. */
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
    // Node has ended the stream by itself for HEAD.
    if (bodiless || stream.writableEnded) discardBody(body);
    else if (!writeSmallBody(stream, body)) return writeBody(stream, body, stallTimeout(this.#context));
    return undefined;
  }

  /**
   * Asks the client to go elsewhere with what comes next. What it has sent before it knows is still answered: the
   * GOAWAY that names a last stream follows when it has had time to hear of the first.
   */
  #sendGoAway(): void {
    if (this.#goingAway || this.session.closed) return;
    this.#goingAway = true;
    this.session.goaway(constants.NGHTTP2_NO_ERROR, STREAM_ID_MAX);
    const timer = this.#context.clock.timer(GOAWAY_GRACE_MS, () => this.session.close());
    this.session.once("close", () => timer.cancel());
  }

  /** The answer could not be sent as the handler made it. */
  #fail(stream: ServerHttp2Stream, request: HttpRequest, error: unknown): void {
    if (stream.destroyed) return;
    if (!request.signal.aborted) logFailure(this.#context, request, error);
    if (stream.headersSent) {
      stream.close(error instanceof StalledError ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_INTERNAL_ERROR);
      return;
    }
    void this.#send(
      stream,
      statusResponse(500, "InternalError", "Internal error occurred: the answer could not be written"),
    );
  }
}

/** A request, and what its connection has to know of it. */
class Http2Request extends IncomingRequest {
  /** The whole answer has been written: nobody is left whom the client's going away could concern. */
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

/** The answer has been handed to the connection: asks for no more of the request. */
function closeRequest(this: ServerHttp2Stream): void {
  if (!this.destroyed && !this.readableEnded) this.close(constants.NGHTTP2_NO_ERROR);
}

function plainHeaders(headers: IncomingHttpHeaders): Headers {
  const plain: Record<string, string> = Object.create(null);
  for (const name in headers) {
    if (name.startsWith(":")) continue;
    const value = headers[name];
    if (value !== undefined) plain[name] = typeof value === "string" ? value : value.join(", ");
  }
  const authority = headers[":authority"];
  if (plain.host === undefined && typeof authority === "string") plain.host = authority;
  return plain;
}
