/** A connection within this process: what one end writes the other reads, without system calls and copies. */
import { Socket } from "node:net";
import type { Peer } from "./message.ts";

/** Bytes that a writer may be ahead of its reader, besides the last write. */
const BUFFER_BYTES = 64 * 1024;

type Done = (error?: Error | null) => void;
type Chunk = Uint8Array | string;

/** The two ends. As over TCP, an end that is destroyed before it has ended resets the other. */
export function createLocalConnection(): readonly [Socket, Socket] {
  const [one, other] = [new LocalSocket(), new LocalSocket()];
  one.join(other);
  return [one, other];
}

/** The client of a connection within this process, with the certificates that it would present in a TLS handshake. */
export function localPeer(certificates: readonly Uint8Array[]): Peer {
  return { address: "127.0.0.1", port: 0, encrypted: true, certificates, protocol: "http/1.1" };
}

/** A socket without a handle, which node:http takes as it takes one of TCP. */
class LocalSocket extends Socket {
  #other: LocalSocket | undefined;
  /** Completes a write when the other end has space again. */
  #pending: Done | undefined;

  constructor() {
    const options = { allowHalfOpen: false, highWaterMark: BUFFER_BYTES };
    super(options);
  }

  join(other: LocalSocket): void {
    this.#other = other;
    other.#other = this;
  }

  override _read(): void {
    const other = this.#other;
    if (other !== undefined) other.#complete();
  }

  override _write(chunk: Chunk, encoding: BufferEncoding, done: Done): void {
    this.#send([{ chunk, encoding }], done);
  }

  override _writev(chunks: { readonly chunk: Chunk; readonly encoding: BufferEncoding }[], done: Done): void {
    this.#send(chunks, done);
  }

  override _final(done: Done): void {
    this.#other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    const other = this.#other;
    this.#other = undefined;
    this.#pending = undefined;
    if (other !== undefined) {
      other.#other = undefined;
      if (this.writableFinished) other.#complete(createResetError());
      else process.nextTick(() => other.destroy(createResetError()));
    }
    super._destroy(error, done);
  }

  /** There is no handle that keeps the process running. */
  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  #send(chunks: readonly { readonly chunk: Chunk; readonly encoding: BufferEncoding }[], done: Done): void {
    const other = this.#other;
    if (other === undefined) {
      done(createResetError());
      return;
    }
    let hasSpace = true;
    for (const { chunk, encoding } of chunks) {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
      if (bytes.length > 0) hasSpace = other.push(bytes);
    }
    this.#restartTimeout();
    other.#restartTimeout();
    if (hasSpace) done();
    else this.#pending = done;
  }

  /** The timeout is that of a connection without data; of sockets without a handle, node:net does not restart it. */
  #restartTimeout(): void {
    if (this.timeout) this.setTimeout(this.timeout);
  }

  #complete(error?: Error): void {
    const done = this.#pending;
    this.#pending = undefined;
    done?.(error);
  }
}

function createResetError(): Error {
  return Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" });
}
