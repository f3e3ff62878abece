/**
 * SPDY/3.1 over a connection that has switched to it. Streams carry bytes in both directions. Data is passed to the
 * stream's handler as it arrives, and the connection is read again when the handler's promise resolves, so that nothing
 * is queued here and back-pressure is that of the connection. moby/spdystream has no windows: this side observes the
 * peer's, and announces what it has consumed, from the peer's first SETTINGS or WINDOW_UPDATE.
 */
import type { Writable } from "node:stream";
import { waitForDrain } from "../upgrade/forward-upgrade.ts";
import { readChunks } from "../upgrade/read-chunks.ts";
import {
  DATA_BYTES_MAX,
  dataHead,
  type Frame,
  FrameReader,
  goAwayFrame,
  pingFrame,
  rstStreamFrame,
  SpdyError,
  type StreamOpenFrame,
  synReplyFrame,
  synStreamFrame,
  windowUpdateFrame,
} from "./frames.ts";
import { HeaderDecoder, HeaderEncoder, type SpdyHeaders } from "./header-block.ts";

export const RESET_CODES = {
  protocolError: 1,
  invalidStream: 2,
  refusedStream: 3,
  cancel: 5,
  streamClosed: 9,
} as const;
const GOAWAY_PROTOCOL_ERROR = 1;
/** Open streams of the peer; more are refused. kubectl opens two per forwarded connection. */
const STREAMS_MAX = 4096;
const WINDOW_BYTES = 64 * 1024;
const WINDOW_BYTES_MAX = 0x7fff_ffff;

/** How the receiving side of a stream ended. */
export type StreamEnd = "fin" | "reset" | "closed";

export interface StreamHandler {
  /** The connection is not read while the promise is pending. */
  readonly data: (chunk: Buffer) => Promise<void> | void;
  /** Called once: no more data will arrive. `closed`: the connection ended. */
  readonly end: (how: StreamEnd) => void;
}

export interface SpdyConnectionOptions {
  readonly input: AsyncIterable<Uint8Array>;
  /** Ended by `close`. */
  readonly output: Writable;
  readonly role: "client" | "server";
  /** Accepts a stream of the peer; undefined refuses it. Without it all are refused. */
  readonly onStream?: ((stream: SpdyStream) => StreamHandler | undefined) | undefined;
}

export class SpdyStream {
  readonly id: number;
  readonly headers: SpdyHeaders;
  readonly #connection: StreamOutput;
  handler: StreamHandler;
  /** Bytes that may be sent; observed once the peer uses windows. */
  sendWindow: number;
  consumed = 0;
  isReceiving = true;
  isSending = true;

  constructor(connection: StreamOutput, id: number, headers: SpdyHeaders, handler: StreamHandler, sendWindow: number) {
    this.#connection = connection;
    this.id = id;
    this.headers = headers;
    this.handler = handler;
    this.sendWindow = sendWindow;
  }

  /** Resolves when the data is handed over to the connection. Does nothing after `end` or a reset. */
  async write(data: Uint8Array): Promise<void> {
    let rest = data;
    while (rest.length > 0 && this.isSending) {
      const room = Math.min(DATA_BYTES_MAX, this.#connection.room(this));
      if (room <= 0) {
        await this.#connection.windowOpened();
        continue;
      }
      const part = rest.subarray(0, room);
      rest = rest.subarray(part.length);
      await this.#connection.sendData(this, part, false);
    }
  }

  /** Ends the sending side. */
  async end(): Promise<void> {
    if (!this.isSending) return;
    await this.#connection.sendData(this, new Uint8Array(), true);
  }

  /** Ends both sides. */
  async reset(code: number): Promise<void> {
    await this.#connection.reset(this, code);
  }
}

interface StreamOutput {
  readonly room: (stream: SpdyStream) => number;
  readonly windowOpened: () => Promise<void>;
  readonly sendData: (stream: SpdyStream, data: Uint8Array, fin: boolean) => Promise<void>;
  readonly reset: (stream: SpdyStream, code: number) => Promise<void>;
}

export class SpdyConnection {
  readonly #options: SpdyConnectionOptions;
  readonly #reader = new FrameReader();
  readonly #encoder = new HeaderEncoder();
  /** Undefined when no stream of the peer is accepted: an inflater takes 60 KiB, and replies' headers are not used. */
  readonly #decoder: HeaderDecoder | undefined;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #output: StreamOutput;
  #nextId: number;
  #lastPeerId = 0;
  #peerHasWindows = false;
  #peerWindow = WINDOW_BYTES;
  #isGoingAway = false;
  #isClosed = false;
  #waiting: (() => void)[] = [];

  constructor(options: SpdyConnectionOptions) {
    this.#options = options;
    this.#decoder = options.onStream === undefined ? undefined : new HeaderDecoder();
    this.#nextId = options.role === "client" ? 1 : 2;
    this.#output = {
      room: ({ sendWindow }) => (this.#peerHasWindows ? sendWindow : DATA_BYTES_MAX),
      windowOpened: () => new Promise((resolve) => this.#waiting.push(resolve)),
      sendData: (stream, data, fin) => this.#sendData(stream, data, fin),
      reset: (stream, code) => this.#reset(stream, code),
    };
  }

  /** Opens a stream; the peer's reply is not waited for. Throws after the peer's GOAWAY. */
  open(headers: SpdyHeaders, handler: StreamHandler): SpdyStream {
    if (this.#isClosed || this.#isGoingAway) throw new SpdyError("the peer accepts no more streams");
    const stream = new SpdyStream(this.#output, this.#nextId, headers, handler, this.#peerWindow);
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    this.#write(synStreamFrame(stream.id, this.#encoder.encode(headers), false));
    return stream;
  }

  /**
   * Reads until the peer ends the connection, then ends all streams. Rejects with a `SpdyError` when the peer violates
   * the protocol, after a GOAWAY that says so.
   */
  async run(): Promise<void> {
    try {
      await readChunks(this.#options.input, (chunk) => this.#handleAll(this.#reader.read(chunk)));
    } catch (error) {
      if (error instanceof SpdyError) this.#write(goAwayFrame(this.#lastPeerId, GOAWAY_PROTOCOL_ERROR));
      throw error;
    } finally {
      this.close();
    }
  }

  /** Sends GOAWAY: the peer must not open more streams. */
  goAway(): void {
    this.#write(goAwayFrame(this.#lastPeerId, 0));
  }

  /** Ends all streams and the connection. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stream of [...this.#streams.values()]) this.#remove(stream, "closed");
    this.#wake();
    this.#decoder?.[Symbol.dispose]();
    this.#options.output.end();
  }

  /** Frames that need no waiting are handled at once. */
  #handleAll(frames: Iterator<Frame, void>): Promise<undefined> | undefined {
    for (let next = frames.next(); next.done !== true; next = frames.next()) {
      const handling = this.#handle(next.value);
      if (handling !== undefined) return handling.then(() => this.#handleAll(frames));
    }
    return undefined;
  }

  #handle(frame: Frame): Promise<void> | void {
    switch (frame.type) {
      case "data":
        return this.#receive(frame);
      case "syn_stream":
        return this.#accept(frame);
      case "syn_reply":
      case "headers":
        return this.#skipHeaders(frame);
      case "rst_stream": {
        const stream = this.#streams.get(frame.stream);
        if (stream !== undefined) this.#remove(stream, "reset");
        return;
      }
      case "ping":
        // The peer's pings have numbers of its parity; others are answers.
        if (frame.id % 2 === (this.#options.role === "client" ? 0 : 1)) return this.#writeDrained(pingFrame(frame.id));
        return;
      case "goaway":
        this.#isGoingAway = true;
        return;
      case "settings":
        if (frame.initialWindow !== undefined) this.#setPeerWindow(frame.initialWindow);
        return;
      case "window_update":
        this.#openWindow(frame.stream, frame.delta);
        return;
    }
  }

  async #receive({ stream: id, data, fin }: Extract<Frame, { type: "data" }>): Promise<void> {
    const stream = this.#streams.get(id);
    // Data may cross a reset of this side.
    if (stream === undefined || !stream.isReceiving) return;
    if (data.length > 0) {
      await stream.handler.data(data);
      this.#consume(stream, data.length);
    }
    if (fin) this.#endReceiving(stream, "fin");
  }

  #consume(stream: SpdyStream, length: number): void {
    stream.consumed += length;
    if (!this.#peerHasWindows || stream.consumed < WINDOW_BYTES / 2 || !stream.isReceiving) return;
    this.#write(windowUpdateFrame(stream.id, stream.consumed));
    stream.consumed = 0;
  }

  async #accept({ stream: id, fin, headerBlock }: StreamOpenFrame): Promise<void> {
    const headers = (await this.#decoder?.decode(headerBlock)) ?? {};
    const { role, onStream } = this.#options;
    if (id % 2 !== (role === "client" ? 0 : 1) || id <= this.#lastPeerId) {
      throw new SpdyError(`a stream has the number ${id}`);
    }
    this.#lastPeerId = id;
    if (this.#streams.size >= STREAMS_MAX)
      return await this.#writeDrained(rstStreamFrame(id, RESET_CODES.refusedStream));
    const discard = { data: () => {}, end: () => {} };
    const stream = new SpdyStream(this.#output, id, headers, discard, this.#peerWindow);
    this.#streams.set(id, stream);
    const handler = onStream?.(stream);
    if (handler === undefined) {
      await this.#reset(stream, RESET_CODES.refusedStream);
      return;
    }
    stream.handler = handler;
    if (fin) this.#endReceiving(stream, "fin");
    await this.#writeDrained(synReplyFrame(id, this.#encoder.encode({})));
  }

  async #skipHeaders({ type, stream: id, fin, headerBlock }: StreamOpenFrame): Promise<void> {
    await this.#decoder?.decode(headerBlock);
    const stream = this.#streams.get(id);
    if (stream === undefined) return type === "headers" ? undefined : await this.#writeDrained(invalidStream(id));
    if (fin) this.#endReceiving(stream, "fin");
  }

  #setPeerWindow(size: number): void {
    if (size > WINDOW_BYTES_MAX) throw new SpdyError(`the initial window is ${size}`);
    this.#peerHasWindows = true;
    for (const stream of this.#streams.values()) stream.sendWindow += size - this.#peerWindow;
    this.#peerWindow = size;
    this.#wake();
  }

  #openWindow(id: number, delta: number): void {
    this.#peerHasWindows = true;
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (delta === 0 || stream.sendWindow + delta > WINDOW_BYTES_MAX) {
      throw new SpdyError(`a window grows by ${delta} to more than is allowed`);
    }
    stream.sendWindow += delta;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  async #sendData(stream: SpdyStream, data: Uint8Array, fin: boolean): Promise<void> {
    if (!stream.isSending || this.#isClosed) return;
    stream.sendWindow -= data.length;
    if (fin) {
      stream.isSending = false;
      this.#removeIfEnded(stream);
    }
    const { output } = this.#options;
    output.cork();
    this.#write(dataHead(stream.id, data.length, fin));
    if (data.length > 0) this.#write(data);
    output.uncork();
    await waitForDrain(output);
  }

  async #reset(stream: SpdyStream, code: number): Promise<void> {
    if (!this.#streams.has(stream.id)) return;
    this.#remove(stream, "reset");
    await this.#writeDrained(rstStreamFrame(stream.id, code));
  }

  #endReceiving(stream: SpdyStream, how: StreamEnd): void {
    if (!stream.isReceiving) return;
    stream.isReceiving = false;
    stream.handler.end(how);
    this.#removeIfEnded(stream);
  }

  #remove(stream: SpdyStream, how: StreamEnd): void {
    stream.isSending = false;
    this.#streams.delete(stream.id);
    this.#wake();
    this.#endReceiving(stream, how);
  }

  #removeIfEnded(stream: SpdyStream): void {
    if (!stream.isReceiving && !stream.isSending) this.#streams.delete(stream.id);
  }

  #write(bytes: Uint8Array): void {
    const { output } = this.#options;
    if (!output.destroyed && !output.writableEnded) output.write(bytes);
  }

  /** For answers to the peer, so that it cannot make this side queue them. */
  async #writeDrained(bytes: Uint8Array): Promise<void> {
    this.#write(bytes);
    await waitForDrain(this.#options.output);
  }
}

function invalidStream(id: number): Buffer {
  return rstStreamFrame(id, RESET_CODES.invalidStream);
}
