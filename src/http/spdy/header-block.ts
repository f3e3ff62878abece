/**
 * Header blocks (SPDY/3, section 2.6.10): names and values in one zlib stream per direction, with a preset dictionary.
 */
import { constants, createInflate, type Inflate } from "node:zlib";
import { createTextRecord } from "../../std/collections/text-record.ts";
import { DICTIONARY_ID, dictionary } from "./dictionary.ts";
import { SpdyError } from "./frames.ts";

/** Names in lower case; values of repeated headers are joined with NUL. */
export type SpdyHeaders = Readonly<Record<string, string>>;

/** Of one decompressed block: larger ones end the connection. */
const BLOCK_BYTES_MAX = 64 * 1024;
const HEADERS_MAX = 100;
const STORED_BYTES_MAX = 0xffff;

/**
 * Writes stored blocks, which every inflater accepts: the headers of streams have a few bytes, and a compressor would
 * need 256 KiB per connection.
 */
export class HeaderEncoder {
  #started = false;

  encode(headers: SpdyHeaders): Buffer {
    const block = serialize(headers);
    if (block.length > STORED_BYTES_MAX) throw new SpdyError(`the headers have ${block.length} bytes`);
    const head = Buffer.alloc(5);
    head.writeUInt16LE(block.length, 1);
    head.writeUInt16LE(~block.length & 0xffff, 3);
    const parts = [...(this.#started ? [] : [zlibHeader()]), head, block, EMPTY_BLOCK];
    this.#started = true;
    return Buffer.concat(parts);
  }
}

/** Ends each header block, as a flush of zlib does: Go's inflater returns the data before it only then. */
const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff]);

/** CMF (deflate, window of 32 KiB), FLG with FDICT, and the dictionary's Adler-32 (RFC 1950). */
function zlibHeader(): Buffer {
  const header = Buffer.from([0x78, 0x20, 0, 0, 0, 0]);
  header[1]! |= 31 - (header.readUInt16BE(0) % 31);
  header.writeUInt32BE(DICTIONARY_ID, 2);
  return header;
}

function serialize(headers: SpdyHeaders): Buffer {
  const entries = Object.entries(headers);
  const text = (value: string): Buffer[] => {
    const bytes = Buffer.from(value, "latin1");
    return [count(bytes.length), bytes];
  };
  return Buffer.concat([count(entries.length), ...entries.flatMap(([name, value]) => [...text(name), ...text(value)])]);
}

function count(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Blocks must be decoded in the order of their frames, one at a time. */
export class HeaderDecoder implements Disposable {
  #inflate: Inflate | undefined;
  #chunks: Buffer[] = [];
  #length = 0;
  #failure: ((error: Error) => void) | undefined;

  /** Rejects with a `SpdyError` for an invalid or too large block; the decoder is unusable then. */
  async decode(block: Uint8Array): Promise<SpdyHeaders> {
    // An empty block has no headers.
    if (block.length === 0) return {};
    this.#inflate ??= this.#open();
    const inflate = this.#inflate;
    await new Promise<void>((resolve, reject) => {
      this.#failure = reject;
      inflate.write(block, () => resolve());
    });
    this.#failure = undefined;
    if (this.#length > BLOCK_BYTES_MAX) throw new SpdyError("a header block is too large");
    const bytes = Buffer.concat(this.#chunks, this.#length);
    this.#chunks = [];
    this.#length = 0;
    return parse(bytes);
  }

  [Symbol.dispose](): void {
    this.#inflate?.destroy();
    this.#failure?.(new SpdyError("the connection is closed"));
  }

  #open(): Inflate {
    const inflate = createInflate({ dictionary, flush: constants.Z_SYNC_FLUSH, chunkSize: 4096 });
    inflate.on("data", (chunk: Buffer) => {
      this.#length += chunk.length;
      if (this.#length <= BLOCK_BYTES_MAX) this.#chunks.push(chunk);
      else inflate.destroy(new SpdyError("a header block is too large"));
    });
    inflate.on("error", (error) => {
      this.#failure?.(
        error instanceof SpdyError ? error : new SpdyError(`a header block is invalid: ${error.message}`),
      );
    });
    return inflate;
  }
}

function parse(bytes: Buffer): SpdyHeaders {
  let at = 0;
  const number = (): number => {
    if (at + 4 > bytes.length) throw new SpdyError("a header block ends early");
    at += 4;
    return bytes.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = number();
    if (at + length > bytes.length) throw new SpdyError("a header block ends early");
    at += length;
    return bytes.toString("latin1", at - length, at);
  };
  const headers = createTextRecord();
  const entries = number();
  if (entries > HEADERS_MAX) throw new SpdyError(`a header block has ${entries} headers`);
  for (let index = 0; index < entries; index++) {
    const name = text();
    if (name === "" || name in headers) throw new SpdyError("a header block has an empty or repeated name");
    headers[name.toLowerCase()] = text();
  }
  if (at < bytes.length) throw new SpdyError("a header block has bytes after its headers");
  return headers;
}
