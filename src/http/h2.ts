/** HTTP/2: sessions and streams of node:http2 turned into exchanges. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import {
  endsConnection,
  IncomingRequest,
  logFailure,
  mayHaveBody,
  outgoingHeaders,
  patienceOf,
  respondTo,
  type Serving,
} from "./exchange.ts";
import type { Headers, HttpRequest, HttpResponse, Peer } from "./message.ts";
import { statusJson } from "./respond.ts";
import { discard, StalledError, writeBody } from "./stream.ts";
import { parseTarget } from "./target.ts";

/** What a client may send on one connection before we read on; one stream gets the smaller window. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
export const STREAM_WINDOW_BYTES = 256 * 1024;

const STREAM_ID_MAX = 2 ** 31 - 1;
/** What Go's clients and servers give each other. */
const RETIRE_MS = 1000;

/** One client's connection. */
export class H2Connection {
  readonly session: ServerHttp2Session;
  readonly #serving: Serving;
  readonly #peer: Peer;
  /** Handlers at work, those included whose stream the client has reset. */
  #running = 0;
  #idleSince: number;
  #retiring = false;

  constructor(session: ServerHttp2Session, peer: Peer, serving: Serving) {
    this.session = session;
    this.#peer = peer;
    this.#serving = serving;
    this.#idleSince = serving.clock.monotonic();
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("stream", (stream, headers, flags) => this.#accept(stream, headers, flags));
  }

  /** How long nothing has been asked, in milliseconds. */
  idleFor(now: number): number {
    return this.#running === 0 ? now - this.#idleSince : 0;
  }

  /** Ends a connection that has been idle: politely, then, should a request be begun and never finished, at once. */
  leave(): void {
    if (this.session.closed) this.session.destroy();
    else this.session.close();
  }

  #accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number): void {
    // An unheard "error" would end the process; what matters is that the stream closes.
    stream.on("error", () => {});
    const { limits, flight } = this.#serving;
    // A client that resets what it asked for starts more than the stream limit counts: end it before work piles up.
    if (this.#running >= limits.streamsPerConnection * 2) {
      this.session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    this.#running++;
    flight.enter();
    void this.#exchange(stream, headers, flags).finally(() => {
      this.#running--;
      this.#idleSince = this.#serving.clock.monotonic();
      flight.leave();
    });
  }

  async #exchange(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number): Promise<void> {
    const method = String(headers[":method"]);
    const target = method === "CONNECT" ? undefined : parseTarget(headers[":path"] as string | undefined);
    if (target === undefined) {
      await this.#send(stream, statusJson(400, "BadRequest", "the request's target is malformed"));
      return;
    }
    const whole = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const request = new IncomingRequest(method, target, plainHeaders(headers), this.#peer, whole ? undefined : stream);
    const closed = (): void => request.abort();
    stream.once("close", closed);
    const response = await respondTo(this.#serving, request);
    try {
      await this.#send(stream, response);
    } catch (error) {
      await this.#fail(stream, request, error);
    }
    // All has been handed over: nobody is left whom the client's going away could concern.
    stream.off("close", closed);
    await ended(stream);
  }

  async #send(stream: ServerHttp2Stream, response: HttpResponse): Promise<void> {
    if (stream.destroyed || stream.closed) {
      discard(response.body);
      return;
    }
    const headers = { ":status": response.status, ...outgoingHeaders(response) };
    const bodiless = !mayHaveBody(response.status) || headers["content-length" as keyof typeof headers] === 0;
    try {
      stream.respond(headers, { endStream: bodiless });
    } catch (error) {
      discard(response.body);
      throw error;
    }
    if (endsConnection(response)) this.#retire();
    // Node has ended the stream by itself for HEAD.
    if (bodiless || stream.writableEnded) discard(response.body);
    else await writeBody(stream, response.body, patienceOf(this.#serving));
  }

  /**
   * Asks the client to go elsewhere with what comes next. What it has sent before it knows is still answered: the GOAWAY
   * that names a last stream follows when it has had time to hear of the first.
   */
  #retire(): void {
    if (this.#retiring || this.session.closed) return;
    this.#retiring = true;
    this.session.goaway(constants.NGHTTP2_NO_ERROR, STREAM_ID_MAX);
    const timer = this.#serving.clock.timer(RETIRE_MS, () => this.session.close());
    this.session.once("close", () => timer.cancel());
  }

  /** The answer could not be sent as the handler made it. */
  async #fail(stream: ServerHttp2Stream, request: HttpRequest, error: unknown): Promise<void> {
    if (stream.destroyed) return;
    if (!request.signal.aborted) logFailure(this.#serving, request, error);
    if (stream.headersSent) {
      stream.close(error instanceof StalledError ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_INTERNAL_ERROR);
    } else
      await this.#send(
        stream,
        statusJson(500, "InternalError", "Internal error occurred: the answer could not be written"),
      );
  }
}

/** Resolves when the answer has been handed to the connection; then asks for no more of the request. */
function ended(stream: ServerHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off("finish", done);
      stream.off("close", done);
      if (!stream.destroyed && !stream.endAfterHeaders && !stream.readableEnded)
        stream.close(constants.NGHTTP2_NO_ERROR);
      resolve();
    };
    if (stream.destroyed || stream.writableFinished) done();
    else {
      stream.on("finish", done);
      stream.on("close", done);
    }
  });
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
