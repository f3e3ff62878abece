/**
 * Builds responses from records. `dns-packet` encodes the records' data; owner names are compressed here, because the
 * library writes each name in full: with compression 29 addresses fit into 512 bytes, without it 8.
 */
import { type Answer, encode, type HInfoAnswer, type SoaAnswer, type SrvAnswer, type TxtAnswer } from "dns-packet";
import { flag, HEADER_BYTES, TCP_BYTES_MAX, UDP_BYTES_DEFAULT, UDP_BYTES_MAX } from "./constants.ts";
import { encodeOpt, OPT_BYTES, type Query } from "./query.ts";

interface NameOrAddress {
  readonly type: "A" | "AAAA" | "CNAME" | "NS" | "PTR";
  readonly data: string;
}

/** A record as `dns-packet` encodes it. Names are in lower case and without a final dot. */
export type ResourceRecord = { readonly name: string; readonly ttl: number } & (
  | NameOrAddress
  | Pick<HInfoAnswer, "type" | "data">
  | Pick<SoaAnswer, "type" | "data">
  | Pick<SrvAnswer, "type" | "data">
  | Pick<TxtAnswer, "type" | "data">
);

export interface ResponseRecords {
  readonly rcode: number;
  /** Whether the records are this server's own. */
  readonly authoritative: boolean;
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

export type Protocol = "udp" | "tcp";

/** The largest response in bytes that the client accepts. */
export function responseBytesMax(query: Query, protocol: Protocol): number {
  if (protocol === "tcp") return TCP_BYTES_MAX;
  return Math.min(query.edns?.payloadBytes ?? UDP_BYTES_DEFAULT, UDP_BYTES_MAX);
}

/** Records that do not fit are left out; the response is marked as truncated when these are answers or authorities. */
export function encodeResponse(query: Query, records: ResponseRecords, protocol: Protocol): Buffer {
  const bytesMax = responseBytesMax(query, protocol) - (query.edns === undefined ? 0 : OPT_BYTES);
  const sections = takeFirst([records.answers, records.authorities, records.additionals], recordsMax(bytesMax));
  const writer = new RecordWriter(query, sections.flat());
  const counts = [0, 0, 0];
  let isTruncated = false;
  write: for (const [section, list] of sections.entries()) {
    for (const { name } of list) {
      if (!writer.writeNext(name, bytesMax)) {
        // Additional records are optional: RFC 2181, section 9.
        isTruncated = section < 2;
        break write;
      }
      counts[section]!++;
    }
  }
  const flags = (records.authoritative ? flag.authoritative : 0) | (isTruncated ? flag.truncated : 0);
  return finishResponse(query, writer.bytes, writer.length, { rcode: records.rcode, flags, counts });
}

/** One more than a message of so many bytes can have, so that it is noticed when some do not fit. */
function recordsMax(bytes: number): number {
  return Math.ceil(bytes / RECORD_BYTES_MIN);
}

/** Of the records in order: a service may have a million, and to encode them takes longer than a client waits. */
function takeFirst(
  sections: readonly (readonly ResourceRecord[])[],
  count: number,
): readonly (readonly ResourceRecord[])[] {
  let rest = count;
  return sections.map((section) => {
    const taken = section.slice(0, rest);
    rest -= taken.length;
    return taken;
  });
}

interface ResponseHeader {
  readonly rcode: number;
  /** Besides those that the query determines. */
  readonly flags: number;
  /** Of answers, authorities and additional records. */
  readonly counts: readonly number[];
}

/** Writes the header, and an OPT record if the client uses EDNS: `bytes` must have space for it after `length`. */
export function finishResponse(query: Query, bytes: Buffer, length: number, header: ResponseHeader): Buffer {
  const { edns } = query;
  const repeated = query.flags & (flag.recursionDesired | flag.checkingDisabled);
  bytes.writeUInt16BE(query.id, 0);
  bytes.writeUInt16BE(
    flag.response | flag.recursionAvailable | header.flags | repeated | (header.rcode & RCODE_MASK),
    2,
  );
  bytes.writeUInt16BE(1, 4);
  for (const [i, count] of header.counts.entries()) bytes.writeUInt16BE(count, 6 + 2 * i);
  if (edns === undefined) return bytes.subarray(0, length);
  const { dnssecOk } = edns;
  bytes.set(encodeOpt({ payloadBytes: UDP_BYTES_MAX, version: 0, dnssecOk }, header.rcode >> 4), length);
  bytes.writeUInt16BE(header.counts[2]! + 1, 10);
  return bytes.subarray(0, length + OPT_BYTES);
}

/** A response to a message whose question cannot be repeated. */
export function encodeErrorHeader(id: number, flags: number, code: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flag.response | (flags & (OPCODE_MASK | flag.recursionDesired)) | code, 2);
  return header;
}

const OPCODE_MASK = 0x7800;
const RCODE_MASK = 0xf;
/** Type, class, TTL and length of the data. */
const FIXED_BYTES = 10;
/** A name and data of one byte each. */
const RECORD_BYTES_MIN = FIXED_BYTES + 2;
/** No response has as many records, whatever the protocol. */
export const RESPONSE_RECORDS_MAX = recordsMax(TCP_BYTES_MAX);
/** Compression pointers have 14 bits. */
const POINTER_MAX = 0x3fff;

/** Writes the question, then the records one by one. */
class RecordWriter {
  readonly bytes: Buffer;
  length: number;
  /** A message of the records, whose owner is the root in place of their names. */
  readonly #encoded: Buffer;
  #next = HEADER_BYTES;
  /** Where names, and the ends of names, are in the message. */
  readonly #names = new Map<string, number>();

  constructor({ question, name, hasDotInLabel }: Query, records: readonly ResourceRecord[]) {
    this.#encoded = encode({ answers: records.map((each): Answer => ({ ...each, name: "." })) });
    const namesMax = records.reduce((sum, each) => sum + each.name.length + 2, 0);
    this.bytes = Buffer.allocUnsafe(HEADER_BYTES + question.length + this.#encoded.length + namesMax + OPT_BYTES);
    this.bytes.set(question, HEADER_BYTES);
    this.length = HEADER_BYTES + question.length;
    if (!hasDotInLabel) this.#addNames(name, HEADER_BYTES);
  }

  /** Writes the next record, which has this name, unless the message would be larger than `bytesMax`. */
  writeNext(name: string, bytesMax: number): boolean {
    const fixed = this.#next + 1;
    const end = fixed + FIXED_BYTES + this.#encoded.readUInt16BE(fixed + FIXED_BYTES - 2);
    const before = this.length;
    this.#writeName(name);
    if (this.length + end - fixed > bytesMax) {
      this.length = before;
      return false;
    }
    this.bytes.set(this.#encoded.subarray(fixed, end), this.length);
    this.length += end - fixed;
    this.#next = end;
    return true;
  }

  #writeName(name: string): void {
    let rest = name;
    while (rest !== "") {
      const pointer = this.#names.get(rest);
      if (pointer !== undefined) {
        this.length = this.bytes.writeUInt16BE(0xc000 | pointer, this.length);
        return;
      }
      if (this.length <= POINTER_MAX) this.#names.set(rest, this.length);
      const dot = rest.indexOf(".");
      const label = dot === -1 ? rest : rest.slice(0, dot);
      this.bytes[this.length] = this.bytes.write(label, this.length + 1, "latin1");
      this.length += 1 + label.length;
      rest = dot === -1 ? "" : rest.slice(dot + 1);
    }
    this.bytes[this.length++] = 0;
  }

  #addNames(name: string, start: number): void {
    let offset = start;
    for (let rest = name; rest !== ""; ) {
      this.#names.set(rest, offset);
      const dot = rest.indexOf(".");
      if (dot === -1) return;
      offset += dot + 1;
      rest = rest.slice(dot + 1);
    }
  }
}
