/** HTTP/2 frames as bytes, for tests that send what no client library does. */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { systemClock } from "../../std/time/clock.ts";

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

export const FLAG = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

/** `length` overrides the length of the payload. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array, length?: number): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length ?? payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4);
  return bytes;
}

/** Pairs of identifier and value. */
export function settings(...pairs: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6);
  for (const [index, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return frame(TYPE.settings, 0, 0, payload);
}

/** HPACK without tables or Huffman codes: literals that are not indexed. */
export function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => Buffer.concat([integer(Buffer.byteLength(value), 7), Buffer.from(value)]);
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]));
}

function integer(value: number, bits: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.of(value);
  const bytes = [most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A TLS connection with ALPN h2 that has sent nothing yet. */
export class RawConnection implements AsyncDisposable {
  readonly socket: TLSSocket;
  readonly frames: Frame[] = [];
  closed = false;
  #pending = Buffer.alloc(0);
  #changed: () => void = () => {};

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.setNoDelay(true).on("error", () => {});
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("close", () => {
      this.closed = true;
      this.#changed();
    });
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    await once(socket, "secureConnect");
    return new RawConnection(socket);
  }

  send(...chunks: readonly Uint8Array[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(chunks));
  }

  /** Resolves when `holds` returns true, the connection closes or the time is over, with what `holds` returns. */
  async until(holds: (connection: this) => boolean, milliseconds = 5000): Promise<boolean> {
    const late = Promise.withResolvers<void>();
    const timer = systemClock.timer(milliseconds, late.resolve);
    let over = false;
    void late.promise.then(() => {
      over = true;
    });
    while (!holds(this) && !this.closed && !over) {
      const change = Promise.withResolvers<void>();
      this.#changed = change.resolve;
      await Promise.race([change.promise, late.promise]);
    }
    timer.cancel();
    return holds(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await this.until(({ closed }) => closed);
  }

  #take(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const length = this.#pending.length < 9 ? 0 : this.#pending.readUIntBE(0, 3);
      if (this.#pending.length < 9 + length) break;
      const [type = 0, flags = 0] = this.#pending.subarray(3, 5);
      const stream = this.#pending.readUInt32BE(5) % 2 ** 31;
      this.frames.push({ type, flags, stream, payload: this.#pending.subarray(9, 9 + length) });
      this.#pending = this.#pending.subarray(9 + length);
    }
    this.#changed();
  }
}
