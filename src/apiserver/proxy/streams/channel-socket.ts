/**
 * The server's side of `v5.channel.k8s.io`: each WebSocket message is a channel's number and its data. A message of the
 * number 255 and a channel closes that channel.
 */
import type { HttpRequest, HttpResponse } from "../../../http/message.ts";
import { acceptHeaders, isWebSocketRequest, offeredProtocols } from "../../../http/websocket/handshake.ts";
import { type MessagePart, MessageSocket } from "../../../http/websocket/message-socket.ts";

export const STREAM_CLOSE_PROTOCOL = "v5.channel.k8s.io";
export const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const CLOSE_SIGNAL = 255;
const CHANNEL_COUNT = 5;

export interface ChannelHandler {
  /** Data of a channel, as it arrives; the connection is not read while the promise is pending. */
  readonly data: (channel: number, data: Buffer) => Promise<void> | void;
  /** The client has closed a channel. */
  readonly close: (channel: number) => Promise<void> | void;
}

/** Whether the client offers the protocol, besides others. */
export function isStreamCloseRequest(request: HttpRequest): boolean {
  return isWebSocketRequest(request) && offeredProtocols(request).includes(STREAM_CLOSE_PROTOCOL);
}

export class ChannelSocket {
  readonly #socket: MessageSocket;
  readonly #request: HttpRequest;

  constructor(request: HttpRequest) {
    this.#request = request;
    this.#socket = new MessageSocket(request.connection ?? request.body);
  }

  get response(): HttpResponse {
    const { "sec-websocket-key": key = "" } = this.#request.headers;
    return { status: 101, headers: acceptHeaders(key, STREAM_CLOSE_PROTOCOL), body: this.#socket.body };
  }

  /** Reads until the client closes. Never rejects. */
  async run(handler: ChannelHandler): Promise<void> {
    let channel = 0;
    let signal: number[] = [];
    const receive = async ({ first, last, data }: MessagePart): Promise<boolean> => {
      let rest = data;
      if (first) channel = -1;
      if (channel === -1 && rest.length > 0) {
        channel = rest[0]!;
        rest = rest.subarray(1);
        signal = [];
      }
      if (channel !== CLOSE_SIGNAL) {
        if (rest.length > 0 && channel >= 0) await handler.data(channel, rest);
        return true;
      }
      signal.push(...rest.subarray(0, 2));
      if (!last) return true;
      // As kube-apiserver, an invalid signal ends the connection.
      const [closed = CHANNEL_COUNT] = signal;
      if (signal.length !== 1 || closed >= CHANNEL_COUNT) return false;
      await handler.close(closed);
      return true;
    };
    await this.#socket.run({ data: receive });
  }

  async send(channel: number, data: Uint8Array): Promise<void> {
    await this.#socket.send("binary", Uint8Array.of(channel), data);
  }

  close(): void {
    this.#socket.close();
  }
}

/** The response of golang.org/x/net/websocket to an invalid handshake; undefined for a valid one. */
export function rejectHandshake({ method, headers }: HttpRequest): HttpResponse | undefined {
  const respond = (status: number, message: string, more: Readonly<Record<string, string>> = {}): HttpResponse => ({
    status,
    headers: more,
    body: Buffer.from(message),
    asReceived: true,
  });
  if (method !== "GET") return respond(405, "bad method");
  if ((headers["sec-websocket-key"] ?? "") === "") return respond(400, "mismatch challenge/response");
  if (headers["sec-websocket-version"] === "13") return undefined;
  return respond(400, "missing or bad WebSocket Version", { "sec-websocket-version": "13" });
}
