import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import { joinHeaders } from "../../http/join-headers.ts";
import type { HttpResponse } from "../../http/message.ts";
import type { Clock, Timer } from "../../std/time/clock.ts";
import { NotSentError, type OutgoingRequest, type Upstream } from "./upstream.ts";

/** As in client-go: a connection without a response to a ping for this long is dead, even if TCP is connected. */
const PING_EVERY_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
/** Lists have megabytes; the default window of 64 KiB would add round trips. */
const WINDOW_BYTES = 1024 * 1024;

/** An HTTP/2 connection. */
export class H2Upstream implements Upstream {
  readonly #session: ClientHttp2Session;
  readonly #authority: string;
  readonly #clock: Clock;
  #streams = 0;
  #timer: Timer | undefined;

  constructor(url: URL, socket: TLSSocket, clock: Clock) {
    this.#authority = url.host;
    this.#clock = clock;
    this.#session = connect(url.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    });
    // Requests report errors of the session; without a listener an error would terminate the process.
    this.#session.on("error", () => {});
    this.#session.once("connect", () => this.#session.setLocalWindowSize(WINDOW_BYTES * 4));
    this.#session.once("close", () => this.#timer?.cancel());
    this.#keepAlive();
  }

  /** Resolves when the server has sent its settings; rejects with the reason when the connection fails first. */
  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      let cause: Error | undefined;
      this.#session.once("error", (error) => {
        cause = error;
      });
      this.#session.once("remoteSettings", () => resolve());
      this.#session.once("close", () => reject(cause ?? new Error(`The connection to ${this.#authority} was closed`)));
    });
  }

  get usable(): boolean {
    const max = this.#session.remoteSettings?.maxConcurrentStreams ?? 100;
    return !this.#session.closed && !this.#session.destroyed && this.#streams < max;
  }

  get alive(): boolean {
    return !this.#session.destroyed;
  }

  send(outgoing: OutgoingRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const { signal, body } = outgoing;
      if (signal.aborted) throw signal.reason;
      const stream = this.#open(outgoing);
      this.#streams++;
      let hasResponse = false;
      const abort = (): void => void stream.destroy(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      stream.on("error", (error) => {
        if (!hasResponse) reject(signal.aborted ? signal.reason : failure(stream, error));
      });
      stream.once("close", () => {
        this.#streams--;
        signal.removeEventListener("abort", abort);
        if (!hasResponse)
          reject(signal.aborted ? signal.reason : failure(stream, new Error("The connection was closed")));
      });
      stream.once("response", (headers) => {
        hasResponse = true;
        resolve({ status: Number(headers[":status"]), headers: joinHeaders(headers), body: stream });
      });
      if (body.length > 0) stream.end(body);
    });
  }

  retire(): void {
    this.#timer?.cancel();
    if (!this.#session.closed) this.#session.close();
  }

  destroy(): void {
    this.#timer?.cancel();
    this.#session.destroy();
  }

  #open(outgoing: OutgoingRequest): ClientHttp2Stream {
    try {
      const headers = {
        ...outgoing.headers,
        ":method": outgoing.method,
        ":path": outgoing.target,
        ":scheme": "https",
        ":authority": this.#authority,
      };
      return this.#session.request(headers, { endStream: outgoing.body.length === 0 });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ERR_HTTP2_INVALID_SESSION" || code === "ERR_HTTP2_GOAWAY_SESSION") {
        throw new NotSentError("The connection was closed", { cause: error });
      }
      throw error;
    }
  }

  #keepAlive(): void {
    this.#timer = this.#clock.timer(PING_EVERY_MS, () => {
      if (this.#session.destroyed) return;
      this.#timer = this.#clock.timer(PING_TIMEOUT_MS, () => {
        this.#session.destroy(new Error(`The connection to ${this.#authority} is dead: a ping got no response`));
      });
      const sent = this.#session.ping(() => {
        this.#timer?.cancel();
        if (!this.#session.destroyed) this.#keepAlive();
      });
      if (!sent) this.#session.destroy();
    });
  }
}

function failure(stream: ClientHttp2Stream, error: Error): Error {
  return stream.rstCode === constants.NGHTTP2_REFUSED_STREAM
    ? new NotSentError("The server refused the request for now", { cause: error })
    : error;
}
