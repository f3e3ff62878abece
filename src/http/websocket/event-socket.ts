/**
 * The server's side of WebSocket (RFC 6455) for streams that only the server sends: messages of the client are
 * discarded; pings are answered.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { HttpError } from "../http-error.ts";
import type { HttpRequest, HttpResponse } from "../message.ts";
import { CLOSE_CODES, closeFrame, FrameError, frameHead, OPCODES, WebSocketReader } from "./frames.ts";
import { acceptHeaders } from "./handshake.ts";

export interface WebSocketOptions {
  /** The subprotocol in the response; the client has offered it. */
  readonly protocol?: string | undefined;
  readonly type: "text" | "binary";
}

/** Sends each chunk as a message, then a close frame. Throws an `HttpError` for an invalid handshake. */
export function webSocketResponse(
  request: HttpRequest,
  messages: AsyncIterable<Uint8Array>,
  { protocol, type }: WebSocketOptions,
): HttpResponse {
  const { "sec-websocket-key": key = "", "sec-websocket-version": version } = request.headers;
  if (request.method !== "GET") throw new HttpError(405, "MethodNotAllowed", "a WebSocket handshake is a GET");
  if (version !== "13") throw new HttpError(400, "BadRequest", "the WebSocket version is not 13");
  if (Buffer.from(key, "base64").length !== 16) throw new HttpError(400, "BadRequest", "the WebSocket key is invalid");
  const headers = acceptHeaders(key, protocol);
  const output = new PassThrough();
  void sendMessages(messages, output, type);
  void readClient(request.body, output);
  return { status: 101, headers, body: output };
}

async function sendMessages(messages: AsyncIterable<Uint8Array>, output: PassThrough, type: "text" | "binary") {
  try {
    for await (const message of messages) {
      if (output.writableEnded || output.destroyed) return;
      if (!writeFrame(output, OPCODES[type], message)) await drained(output);
    }
    closeOutput(output, CLOSE_CODES.normal);
  } catch (error) {
    output.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

async function drained(output: PassThrough): Promise<void> {
  const stopped = new AbortController();
  const { signal } = stopped;
  await Promise.race([once(output, "drain", { signal }), once(output, "close", { signal })]).finally(() =>
    stopped.abort(),
  );
}

/** Reads the client's frames until it closes. */
async function readClient(body: AsyncIterable<Uint8Array>, output: PassThrough): Promise<void> {
  const reader = new WebSocketReader();
  try {
    for await (const chunk of body) {
      for (const frame of reader.read(chunk)) {
        if (frame.type === "ping" && !output.writableEnded && !output.writableNeedDrain) {
          writeFrame(output, OPCODES.pong, frame.payload);
        }
        if (frame.type === "close") return closeOutput(output, CLOSE_CODES.normal);
      }
    }
    output.end();
  } catch (error) {
    closeOutput(output, error instanceof FrameError ? CLOSE_CODES.protocolError : CLOSE_CODES.normal);
  }
}

function closeOutput(output: PassThrough, code: number): void {
  if (output.writableEnded || output.destroyed) return;
  output.end(closeFrame(code));
}

/** Returns false when the output is full. */
function writeFrame(output: PassThrough, opcode: number, payload: Uint8Array): boolean {
  return output.write(Buffer.concat([frameHead(opcode, payload.length), payload]));
}
