/** SPDY/3.1 frames (draft-mbelshe-httpbis-spdy-00, section 2.6). Header blocks stay compressed here. */

export interface StreamOpenFrame {
  readonly type: "syn_stream" | "syn_reply" | "headers";
  readonly stream: number;
  readonly fin: boolean;
  readonly headerBlock: Buffer;
}

/** A part of a DATA frame as it arrived; `fin` is set on the last part of a frame that has the flag. */
interface DataFrame {
  readonly type: "data";
  readonly stream: number;
  readonly fin: boolean;
  readonly data: Buffer;
}

export type Frame =
  | StreamOpenFrame
  | DataFrame
  | { readonly type: "rst_stream"; readonly stream: number; readonly code: number }
  | { readonly type: "settings"; readonly initialWindow: number | undefined }
  | { readonly type: "ping"; readonly id: number }
  | { readonly type: "goaway"; readonly lastStream: number; readonly code: number }
  | { readonly type: "window_update"; readonly stream: number; readonly delta: number };

/** The peer violates the protocol. */
export class SpdyError extends Error {
  override readonly name = "SpdyError";
}

const VERSION = 3;
const TYPES = {
  syn_stream: 1,
  syn_reply: 2,
  rst_stream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  headers: 8,
  window_update: 9,
} as const;
const NAMES = new Map<number, keyof typeof TYPES>(
  Object.entries(TYPES).map(([name, type]) => [type, name as keyof typeof TYPES]),
);
/** The fixed part of each control frame's payload. */
const PAYLOAD_BYTES_MIN = {
  syn_stream: 10,
  syn_reply: 4,
  rst_stream: 8,
  settings: 4,
  ping: 4,
  goaway: 8,
  headers: 4,
  window_update: 8,
} as const satisfies Record<keyof typeof TYPES, number>;

export const HEAD_BYTES = 8;
const FLAG_FIN = 1;
/** Larger control frames end the connection. */
export const CONTROL_BYTES_MAX = 32 * 1024;
export const DATA_BYTES_MAX = 0xff_ffff;
const STREAM_MASK = 0x7fff_ffff;
const INITIAL_WINDOW_SETTING = 7;

const empty = Buffer.alloc(0);

interface PartialData {
  readonly stream: number;
  readonly fin: boolean;
  /** Bytes that have not arrived. */
  left: number;
}

/** Parses the bytes of a connection. Data is passed on as it arrives; at most one control frame is buffered. */
export class FrameReader {
  #pending: Buffer = empty;
  /** The data frame whose payload is being read. */
  #data: PartialData | undefined;

  /** Throws a `SpdyError` for invalid bytes; the reader is unusable then. */
  *read(chunk: Uint8Array): Generator<Frame> {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    for (;;) {
      const frame = this.#data === undefined ? this.#next() : this.#nextData(this.#data);
      // An empty part of the chunk would keep its memory.
      if (this.#pending.length === 0) this.#pending = empty;
      if (frame === undefined) return;
      if (frame !== "skipped") yield frame;
    }
  }

  #next(): Frame | "skipped" | undefined {
    const bytes = this.#pending;
    if (bytes.length < HEAD_BYTES) return undefined;
    const first = bytes.readUInt32BE(0);
    const flags = bytes[4]!;
    const length = bytes.readUIntBE(5, 3);
    if (first >>> 31 === 0) {
      if (first === 0) throw new SpdyError("a data frame has stream 0");
      this.#pending = bytes.subarray(HEAD_BYTES);
      this.#data = { stream: first, fin: (flags & FLAG_FIN) !== 0, left: length };
      return this.#nextData(this.#data);
    }
    const version = (first >>> 16) & 0x7fff;
    if (version !== VERSION) throw new SpdyError(`the version of a frame is ${version}`);
    if (length > CONTROL_BYTES_MAX) throw new SpdyError(`a control frame has ${length} bytes`);
    if (bytes.length < HEAD_BYTES + length) return undefined;
    const payload = bytes.subarray(HEAD_BYTES, HEAD_BYTES + length);
    this.#pending = bytes.subarray(HEAD_BYTES + length);
    const name = NAMES.get(first & 0xffff);
    // Types of extensions are ignored.
    return name === undefined ? "skipped" : parseControl(name, flags, payload);
  }

  #nextData(data: PartialData): Frame | undefined {
    const taken = this.#pending.subarray(0, data.left);
    if (taken.length === 0 && data.left > 0) return undefined;
    this.#pending = this.#pending.subarray(taken.length);
    data.left -= taken.length;
    if (data.left === 0) this.#data = undefined;
    return { type: "data", stream: data.stream, fin: data.fin && data.left === 0, data: taken };
  }
}

function parseControl(name: keyof typeof TYPES, flags: number, payload: Buffer): Frame {
  if (payload.length < PAYLOAD_BYTES_MIN[name]) throw new SpdyError(`a ${name} frame has ${payload.length} bytes`);
  const word = (at: number): number => payload.readUInt32BE(at);
  const stream = word(0) & STREAM_MASK;
  switch (name) {
    case "syn_stream":
    case "syn_reply":
    case "headers":
      if (stream === 0) throw new SpdyError(`a ${name} frame has stream 0`);
      return {
        type: name,
        stream,
        fin: (flags & FLAG_FIN) !== 0,
        headerBlock: payload.subarray(PAYLOAD_BYTES_MIN[name]),
      };
    case "rst_stream":
      return { type: name, stream, code: word(4) };
    case "settings":
      return { type: name, initialWindow: parseInitialWindow(payload) };
    case "ping":
      return { type: name, id: word(0) };
    case "goaway":
      return { type: name, lastStream: stream, code: word(4) };
    case "window_update":
      return { type: name, stream, delta: word(4) & STREAM_MASK };
  }
}

function parseInitialWindow(payload: Buffer): number | undefined {
  const count = payload.readUInt32BE(0);
  if (payload.length !== 4 + count * 8) throw new SpdyError("a settings frame has the wrong length");
  for (let at = 4; at < payload.length; at += 8) {
    if ((payload.readUInt32BE(at) & 0xff_ffff) === INITIAL_WINDOW_SETTING) return payload.readUInt32BE(at + 4);
  }
  return undefined;
}

function controlFrame(name: keyof typeof TYPES, flags: number, payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(HEAD_BYTES + payload.length);
  frame.writeUInt32BE((0x8000_0000 | (VERSION << 16) | TYPES[name]) >>> 0, 0);
  frame.writeUInt32BE(payload.length, 4);
  frame[4] = flags;
  frame.set(payload, HEAD_BYTES);
  return frame;
}

function words(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) buffer.writeUInt32BE(value >>> 0, index * 4);
  return buffer;
}

export function synStreamFrame(stream: number, headerBlock: Uint8Array, fin: boolean): Buffer {
  return controlFrame(
    "syn_stream",
    fin ? FLAG_FIN : 0,
    Buffer.concat([words(stream, 0), Buffer.alloc(2), headerBlock]),
  );
}

export function synReplyFrame(stream: number, headerBlock: Uint8Array): Buffer {
  return controlFrame("syn_reply", 0, Buffer.concat([words(stream), headerBlock]));
}

export function rstStreamFrame(stream: number, code: number): Buffer {
  return controlFrame("rst_stream", 0, words(stream, code));
}

export function pingFrame(id: number): Buffer {
  return controlFrame("ping", 0, words(id));
}

export function goAwayFrame(lastStream: number, code: number): Buffer {
  return controlFrame("goaway", 0, words(lastStream, code));
}

export function windowUpdateFrame(stream: number, delta: number): Buffer {
  return controlFrame("window_update", 0, words(stream, delta));
}

/** The head of a frame with `length` bytes of data, at most `DATA_BYTES_MAX`. */
export function dataHead(stream: number, length: number, fin: boolean): Buffer {
  const head = words(stream, length);
  head[4] = fin ? FLAG_FIN : 0;
  return head;
}
