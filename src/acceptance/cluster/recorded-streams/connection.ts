/** A connection that sends recorded frames as they are and collects what the server sends. */
import { once } from "node:events";
import { type TLSSocket, connect as tlsConnect } from "node:tls";
import {
  dataHead,
  FrameReader,
  goAwayFrame,
  pingFrame,
  rstStreamFrame,
  synStreamFrame,
} from "../../../http/spdy/frames.ts";
import { HeaderEncoder } from "../../../http/spdy/header-block.ts";
import { type Entry, type Identity, payloadBytes, type RecordedCase } from "./recording.ts";

export interface Response {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

/** What has arrived, by channel or stream. */
export class Received {
  readonly data = new Map<string, Buffer>();
  readonly replies = new Set<string>();
  readonly fins = new Set<string>();
  readonly resets = new Map<string, number>();
  readonly ports = new Set<string>();
  readonly pings: number[] = [];
  readonly pongs: string[] = [];
  goaway: number | undefined;
  /** The codes of close frames. */
  readonly closes: number[] = [];
  ended = false;

  add(name: string, data: Uint8Array): void {
    this.data.set(name, Buffer.concat([this.data.get(name) ?? Buffer.alloc(0), data]));
  }
}

const HEAD_END = "\r\n\r\n";

export class StreamConnection implements Disposable {
  readonly received = new Received();
  readonly response: Promise<Response>;
  readonly #socket: TLSSocket;
  readonly #one: RecordedCase;
  readonly #encoder = new HeaderEncoder();
  readonly #spdy = new FrameReader();
  readonly #streams = new Map<string, number>();
  /** A tunnel's bytes are in messages. */
  readonly #isWebSocket: boolean;
  readonly #isPortForward: boolean;
  /** Messages have no channels. */
  readonly #isLog: boolean;
  #base64 = false;
  #pending = Buffer.alloc(0);
  #head: Response | undefined;
  #resolve: (response: Response) => void = () => {};
  #changed: () => void = () => {};

  constructor(one: RecordedCase, at: { host: string; port: number }, path: string, identity: Identity) {
    this.#one = one;
    this.#isWebSocket = one.proto === "websocket" || one.proto === "tunnel";
    this.#isPortForward = one.proto === "websocket" && /\/portforward\b/i.test(path);
    this.#isLog = one.proto === "websocket" && /\/log\?/.test(path);
    this.response = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const { cert, key, token } = identity;
    const tls = cert === undefined || key === undefined ? {} : { cert, key };
    this.#socket = tlsConnect({ ...at, ...tls, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
    this.#socket.on("error", () => {});
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("close", () => this.#end());
    this.#socket.on("end", () => this.#end());
    const headers: (readonly [string, string])[] = [["Host", `${at.host}:${at.port}`], ...(one.request.headers ?? [])];
    if (this.#isWebSocket) headers.push(["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="]);
    if (token !== undefined) headers.push(["Authorization", `Bearer ${token}`]);
    if (one.request.method === "POST") headers.push(["Content-Length", "0"]);
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
    this.#socket.write(`${one.request.method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }

  /** Resolves when the condition holds, with whether it does before the time is over. */
  async waitFor(condition: () => boolean, milliseconds: number): Promise<boolean> {
    const deadline = performance.now() + milliseconds;
    while (!condition()) {
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return true;
  }

  async play(entry: Entry): Promise<void> {
    if (entry.frame !== undefined) return this.#sendSpdy(this.#spdyFrame(entry));
    if (entry.op === "tcp close") {
      this.#socket.end();
      await Promise.race([once(this.#socket, "close"), new Promise((resolve) => setTimeout(resolve, 200))]);
      this.#socket.destroy();
      return;
    }
    const { opcode, payload } = this.#message(entry);
    this.#sendFrame(opcode, payload, entry.fin ?? true, entry.masked ?? true);
  }

  #message(entry: Entry): { readonly opcode: number; readonly payload: Buffer } {
    const data = payloadBytes(entry);
    if (entry.op === "frame") return { opcode: entry.opcode ?? 2, payload: data };
    if (entry.op === "ping") return { opcode: 9, payload: data };
    if (entry.op === "close") {
      const code = Buffer.alloc(2);
      code.writeUInt16BE(entry.code ?? 1000);
      return { opcode: 8, payload: code };
    }
    const opcode = entry.op === "text" ? 1 : 2;
    if (entry.raw === true) return { opcode, payload: data };
    const channel = entry.ch ?? 0;
    if (this.#base64) return { opcode, payload: Buffer.from(`${channel}${data.toString("base64")}`) };
    const content = entry.closes === undefined ? data : Buffer.from([entry.closes]);
    return { opcode, payload: Buffer.concat([Buffer.from([channel]), content]) };
  }

  #spdyFrame(entry: Entry): Buffer {
    const name = entry.stream ?? "";
    switch (entry.frame) {
      case "syn_stream": {
        const id = this.#streams.size * 2 + 1;
        this.#streams.set(name, id);
        return synStreamFrame(id, this.#encoder.encode(entry.headers ?? {}), entry.fin ?? false);
      }
      case "rst_stream":
        return rstStreamFrame(this.#streams.get(name) ?? 0, entry.code ?? 5);
      case "goaway":
        return goAwayFrame(0, 0);
      case "ping":
        return pingFrame(entry.id ?? 1);
      default: {
        const data = payloadBytes(entry);
        const id = this.#streams.get(name) ?? 0;
        const parts: Buffer[] = [];
        for (let at = 0; at < data.length || at === 0; at += 32_768) {
          const part = data.subarray(at, at + 32_768);
          const last = at + 32_768 >= data.length;
          parts.push(dataHead(id, part.length, last && (entry.fin ?? false)), part);
        }
        return Buffer.concat(parts);
      }
    }
  }

  #sendSpdy(frame: Buffer): void {
    if (!this.#isWebSocket) this.#socket.write(frame);
    else this.#sendFrame(2, frame, true, true);
  }

  #sendFrame(opcode: number, payload: Buffer, fin: boolean, masked: boolean): void {
    const head = [(fin ? 0x80 : 0) | opcode];
    const bit = masked ? 0x80 : 0;
    if (payload.length < 126) head.push(bit | payload.length);
    else if (payload.length < 65_536) head.push(bit | 126, payload.length >> 8, payload.length & 255);
    else {
      const length = Buffer.alloc(8);
      length.writeBigUInt64BE(BigInt(payload.length));
      head.push(bit | 127, ...length);
    }
    const mask = Buffer.from(masked ? [1, 2, 3, 4] : []);
    const body = masked ? Buffer.from(payload.map((byte, index) => byte ^ mask[index % 4]!)) : payload;
    this.#socket.write(Buffer.concat([Buffer.from(head), mask, body]));
  }

  #receive(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    if (this.#head === undefined) this.#readHead();
    if (this.#head?.status === 101) this.#readStream();
    this.#changed();
  }

  #readHead(): void {
    const end = this.#pending.indexOf(HEAD_END);
    if (end === -1) return;
    const [line = "", ...lines] = this.#pending.toString("latin1", 0, end).split("\r\n");
    const headers = lines.map((each) => {
      const at = each.indexOf(":");
      return [each.slice(0, at).toLowerCase(), each.slice(at + 1).trim()] as const;
    });
    this.#pending = this.#pending.subarray(end + HEAD_END.length);
    this.#head = { status: Number(line.split(" ")[1]), headers, body: Buffer.alloc(0) };
    this.#base64 = headers.some(([name, value]) => name === "sec-websocket-protocol" && value.includes("base64"));
    if (this.#head.status === 101) this.#resolve(this.#head);
    else if (this.#one.request.method === "HEAD") this.#end();
  }

  #readStream(): void {
    if (!this.#isWebSocket) {
      this.#readSpdy(this.#pending);
      this.#pending = Buffer.alloc(0);
      return;
    }
    for (;;) {
      const bytes = this.#pending;
      if (bytes.length < 2) return;
      const short = bytes[1]! & 0x7f;
      const start = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < start) return;
      const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
      if (bytes.length < start + length) return;
      this.#pending = bytes.subarray(start + length);
      this.#readMessage(bytes[0]! & 15, bytes.subarray(start, start + length));
    }
  }

  #readMessage(opcode: number, payload: Buffer): void {
    const { received } = this;
    if (opcode === 8) received.closes.push(payload.length < 2 ? 1005 : payload.readUInt16BE(0));
    else if (opcode === 10) received.pongs.push(payload.toString());
    else if (opcode > 2) return;
    else if (this.#one.proto === "tunnel") this.#readSpdy(payload);
    else if (this.#isLog) {
      received.add("data", this.#base64 ? Buffer.from(payload.toString("latin1"), "base64") : payload);
    } else {
      const channel = this.#base64 ? String.fromCharCode(payload[0] ?? 48) : String(payload[0] ?? 0);
      const data = this.#base64 ? Buffer.from(payload.toString("latin1", 1), "base64") : payload.subarray(1);
      if (this.#isPortForward && !received.ports.has(channel)) received.ports.add(channel);
      else received.add(channel, data);
    }
  }

  #readSpdy(bytes: Buffer): void {
    const { received } = this;
    const nameOf = (id: number): string => [...this.#streams].find(([, each]) => each === id)?.[0] ?? `#${id}`;
    for (const frame of this.#spdy.read(Buffer.from(bytes))) {
      if (frame.type === "data") received.add(nameOf(frame.stream), frame.data);
      if ((frame.type === "data" || frame.type === "syn_reply") && frame.fin) received.fins.add(nameOf(frame.stream));
      if (frame.type === "syn_reply") received.replies.add(nameOf(frame.stream));
      if (frame.type === "rst_stream") received.resets.set(nameOf(frame.stream), frame.code);
      if (frame.type === "ping") received.pings.push(frame.id);
      if (frame.type === "goaway") received.goaway = frame.code;
    }
  }

  #end(): void {
    this.received.ended = true;
    this.#resolve({ status: 0, headers: [], ...this.#head, body: unchunk(this.#head, this.#pending) });
    this.#changed();
  }

  /** Whether the whole body of a response that is no 101 has arrived. */
  isComplete(): boolean {
    const length = this.#head?.headers.find(([name]) => name === "content-length")?.[1];
    const chunked = this.#head?.headers.some(([name, value]) => name === "transfer-encoding" && value === "chunked");
    const { response } = this.#one;
    const whole =
      this.#head?.status === 204 || length !== undefined
        ? this.#pending.length >= Number(length ?? 0)
        : chunked === true && this.#pending.toString("latin1").endsWith("0\r\n\r\n");
    if (response?.ended === "still open" && this.#head?.status === response.status) {
      if (unchunk(this.#head, this.#pending).length >= payloadBytes(response).length) this.#end();
    }
    if (this.#head !== undefined && this.#head.status !== 101 && whole) this.#end();
    return this.received.ended || this.#head?.status === 101;
  }
}

function unchunk(head: Response | undefined, body: Buffer): Buffer {
  if (head?.headers.some(([name, value]) => name === "transfer-encoding" && value === "chunked") !== true) return body;
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const end = body.indexOf("\r\n", at);
    const size = end === -1 ? 0 : Number.parseInt(body.toString("latin1", at, end), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}
