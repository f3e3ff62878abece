/**
 * The server's side of WebSocket (RFC 6455) for streams that only the server sends: messages of the client are
 * discarded; pings are answered.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { HttpError } from "../http-error.ts";
import type { HttpRequest, HttpResponse } from "../message.ts";

export interface WebSocketOptions {
  /** The subprotocol in the response; the client has offered it. */
  readonly protocol?: string | undefined;
  readonly type: "text" | "binary";
}

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const OPCODES = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const CLOSE_NORMAL = 1000;
const CLOSE_PROTOCOL_ERROR = 1002;

export function isWebSocketRequest({ headers, upgradable }: HttpRequest): boolean {
  return upgradable === true && headers.upgrade?.toLowerCase() === "websocket";
}

/** The subprotocols that the client offers. */
export function offeredProtocols({ headers }: HttpRequest): readonly string[] {
  const names = (headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  return names.filter((name) => name !== "");
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
  const accept = createHash("sha1").update(`${key}${ACCEPT_GUID}`).digest("base64");
  const headers = {
    upgrade: "websocket",
    "sec-websocket-accept": accept,
    ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
  };
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
    closeOutput(output, CLOSE_NORMAL);
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
  const reader = new ClientFrames();
  try {
    for await (const chunk of body) {
      for (const { opcode, payload } of reader.read(chunk)) {
        if (opcode === OPCODES.ping && !output.writableEnded && !output.writableNeedDrain) {
          writeFrame(output, OPCODES.pong, payload);
        }
        if (opcode === OPCODES.close) return closeOutput(output, CLOSE_NORMAL);
      }
    }
    output.end();
  } catch (error) {
    closeOutput(output, error instanceof FrameError ? CLOSE_PROTOCOL_ERROR : CLOSE_NORMAL);
  }
}

function closeOutput(output: PassThrough, code: number): void {
  if (output.writableEnded || output.destroyed) return;
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  writeFrame(output, OPCODES.close, payload);
  output.end();
}

/** Returns false when the output is full. */
function writeFrame(output: PassThrough, opcode: number, payload: Uint8Array): boolean {
  return output.write(Buffer.concat([frameHead(opcode, payload.length), payload]));
}

function frameHead(opcode: number, length: number): Buffer {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.from([first, length]);
  const head = Buffer.alloc(length < 65_536 ? 4 : 10);
  head[0] = first;
  if (length < 65_536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return head;
}

interface ControlFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The client violates the protocol. */
class FrameError extends Error {
  override readonly name = "FrameError";
}

const CONTROL_PAYLOAD_MAX = 125;

/** Parses masked frames. Skips messages without keeping them. */
class ClientFrames {
  #pending = Buffer.alloc(0);
  /** The rest of a message's frame. */
  #skipped = 0;

  *read(chunk: Uint8Array): Generator<ControlFrame> {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const skipped = Math.min(this.#skipped, this.#pending.length);
      this.#pending = this.#pending.subarray(skipped);
      this.#skipped -= skipped;
      const frame = this.#skipped > 0 ? undefined : this.#next();
      if (frame === undefined) return;
      if (frame !== "message") yield frame;
    }
  }

  /** Undefined when bytes are missing. */
  #next(): ControlFrame | "message" | undefined {
    const bytes = this.#pending;
    if (bytes.length < 2) return undefined;
    const [first = 0, second = 0] = bytes;
    const opcode = first & 0x0f;
    const short = second & 0x7f;
    const isControl = opcode >= 8;
    if ((first & 0x70) !== 0) throw new FrameError("The frame has reserved bits");
    if ((second & 0x80) === 0) throw new FrameError("The frame is not masked");
    if (isControl && (short > CONTROL_PAYLOAD_MAX || (first & 0x80) === 0))
      throw new FrameError("Invalid control frame");
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const start = 2 + lengthBytes + 4;
    if (bytes.length < start) return undefined;
    if (!isControl) {
      if (lengthBytes === 0) this.#skipped = short;
      else this.#skipped = lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
      this.#pending = bytes.subarray(start);
      return "message";
    }
    if (bytes.length < start + short) return undefined;
    const mask = bytes.subarray(start - 4, start);
    const payload = Buffer.from(bytes.subarray(start, start + short)).map((byte, index) => byte ^ mask[index % 4]!);
    this.#pending = bytes.subarray(start + short);
    return { opcode, payload: Buffer.from(payload) };
  }
}
