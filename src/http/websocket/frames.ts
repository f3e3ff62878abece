/** WebSocket frames as a server reads and writes them (RFC 6455, section 5). */

/** A part of a message as it arrived. */
interface MessagePart {
  readonly type: "data";
  readonly text: boolean;
  /** The first part of its message. */
  readonly first: boolean;
  /** The last part of its message. */
  readonly last: boolean;
  readonly data: Buffer;
}

export type WebSocketFrame =
  | MessagePart
  | { readonly type: "ping" | "pong"; readonly payload: Buffer }
  /** `code` is undefined when the frame has none. */
  | { readonly type: "close"; readonly code: number | undefined };

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
export const CLOSE_CODES = { normal: 1000, protocolError: 1002 } as const;
const CONTROL_PAYLOAD_MAX = 125;
const CONTROL_NAMES: Readonly<Record<number, "close" | "ping" | "pong">> = { 8: "close", 9: "ping", 10: "pong" };

/** The client violates the protocol. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

const empty = Buffer.alloc(0);

interface PartialFrame {
  readonly text: boolean;
  readonly fin: boolean;
  readonly mask: number;
  first: boolean;
  /** Payload bytes that have not arrived. */
  left: number;
  /** Payload bytes that have arrived. */
  done: number;
}

/** Parses a client's frames. Messages are passed on as they arrive; at most one control frame is buffered. */
export class WebSocketReader {
  #pending: Buffer = empty;
  #frame: PartialFrame | undefined;
  /** A message whose last frame has not arrived. */
  #message: { readonly text: boolean } | undefined;

  /** Unmasks in place: the chunk belongs to the reader. Throws a `FrameError`; the reader is unusable then. */
  *read(chunk: Uint8Array): Generator<WebSocketFrame> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    for (;;) {
      const frame: WebSocketFrame | "head" | undefined =
        this.#frame === undefined ? this.#next() : this.#nextPart(this.#frame);
      // An empty part of the chunk would keep its memory.
      if (this.#pending.length === 0) this.#pending = empty;
      if (frame === undefined) return;
      if (frame !== "head") yield frame;
    }
  }

  #next(): WebSocketFrame | "head" | undefined {
    const bytes = this.#pending;
    if (bytes.length < 2) return undefined;
    const [first = 0, second = 0] = bytes;
    const opcode = first & 0x0f;
    const fin = (first & 0x80) !== 0;
    const short = second & 0x7f;
    if ((first & 0x70) !== 0) throw new FrameError("The frame has reserved bits");
    if ((second & 0x80) === 0) throw new FrameError("The frame is not masked");
    const control = CONTROL_NAMES[opcode];
    if (control === undefined) this.#checkOpcode(opcode);
    else if (short > CONTROL_PAYLOAD_MAX || !fin) throw new FrameError("Invalid control frame");
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const start = 2 + lengthBytes + 4;
    if (bytes.length < start) return undefined;
    const mask = bytes.readUInt32LE(start - 4);
    if (control === undefined) {
      const length =
        lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
      if (!Number.isSafeInteger(length)) throw new FrameError("The frame is too long");
      this.#pending = bytes.subarray(start);
      const text = this.#message?.text ?? opcode === OPCODES.text;
      this.#frame = { text, fin, mask, first: this.#message === undefined, left: length, done: 0 };
      this.#message = fin ? undefined : { text };
      return "head";
    }
    if (bytes.length < start + short) return undefined;
    const payload = bytes.subarray(start, start + short);
    unmask(payload, mask, 0);
    this.#pending = bytes.subarray(start + short);
    if (control !== "close") return { type: control, payload };
    if (short === 1) throw new FrameError("Invalid close frame");
    return { type: control, code: short === 0 ? undefined : payload.readUInt16BE(0) };
  }

  #checkOpcode(opcode: number): void {
    const isStart = opcode === OPCODES.text || opcode === OPCODES.binary;
    if (!isStart && opcode !== OPCODES.continuation) throw new FrameError(`The opcode ${opcode} is reserved`);
    if (isStart === (this.#message !== undefined)) throw new FrameError("The frames of a message are out of order");
  }

  #nextPart(frame: PartialFrame): WebSocketFrame | undefined {
    const data = this.#pending.subarray(0, frame.left);
    if (data.length === 0 && frame.left > 0) return undefined;
    this.#pending = this.#pending.subarray(data.length);
    unmask(data, frame.mask, frame.done);
    frame.done += data.length;
    frame.left -= data.length;
    const { text, first } = frame;
    frame.first = false;
    if (frame.left === 0) this.#frame = undefined;
    return { type: "data", text, first, last: frame.fin && frame.left === 0, data };
  }
}

/** `mask` is the masking key as a little-endian number; `offset` the position of the bytes in their frame. */
function unmask(bytes: Buffer, mask: number, offset: number): void {
  const byteOf = (index: number): number => (mask >>> (8 * ((offset + index) & 3))) & 0xff;
  const head = Math.min(bytes.length, (4 - (bytes.byteOffset & 3)) & 3);
  for (let index = 0; index < head; index++) bytes[index]! ^= byteOf(index);
  const count = (bytes.length - head) >>> 2;
  if (count > 0) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset + head, count);
    const key = byteOf(head) | (byteOf(head + 1) << 8) | (byteOf(head + 2) << 16) | (byteOf(head + 3) << 24);
    // Eight bytes a round are no faster: the loop is bound by memory.
    for (let index = 0; index < count; index++) words[index]! ^= key;
  }
  for (let index = head + count * 4; index < bytes.length; index++) bytes[index]! ^= byteOf(index);
}

/** The head of an unmasked frame with `length` bytes of payload. */
export function frameHead(opcode: number, length: number): Buffer {
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

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return Buffer.concat([frameHead(OPCODES.close, payload.length), payload]);
}
