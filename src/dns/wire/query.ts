/** Reads queries of clients. The question is kept as the client sent it, because responses repeat its bytes. */
import {
  CLASS_IN,
  DNSSEC_OK,
  flag,
  HEADER_BYTES,
  LABEL_BYTES_MAX,
  NAME_BYTES_MAX,
  rcode,
  recordType,
  UDP_BYTES_DEFAULT,
} from "./constants.ts";
import { readRecordPosition } from "./record-positions.ts";

export interface Edns {
  /** The largest UDP response in bytes that the client accepts, 512 at least. */
  readonly payloadBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
}

export interface Query {
  readonly id: number;
  /** The flags of the client's header. */
  readonly flags: number;
  /** The question section, with the client's upper and lower case. */
  readonly question: Buffer;
  /** In lower case and without a final dot; "" is the root. Bytes beyond ASCII are in Latin-1. */
  readonly name: string;
  /** Whether a label contains a dot, so that `name` does not show where labels end. */
  readonly hasDotInLabel: boolean;
  readonly type: number;
  readonly class: number;
  /** Undefined: the client does not use EDNS. */
  readonly edns: Edns | undefined;
}

export type ParsedQuery =
  | { readonly kind: "query"; readonly query: Query }
  /** A response without question has this code. */
  | { readonly kind: "error"; readonly id: number; readonly flags: number; readonly rcode: number }
  /** Not a query: a response to it could start a loop. */
  | { readonly kind: "ignored" };

/** A query has an OPT record, and perhaps TSIG or SIG(0). */
const ADDITIONAL_MAX = 4;
const OPCODE_MASK = 0x7800;

export function parseQuery(bytes: Buffer): ParsedQuery {
  if (bytes.length < HEADER_BYTES) return ignored;
  const id = bytes.readUInt16BE(0);
  const flags = bytes.readUInt16BE(2);
  if ((flags & flag.response) !== 0) return ignored;
  const fail = (code: number): ParsedQuery => ({ kind: "error", id, flags, rcode: code });
  if ((flags & OPCODE_MASK) !== 0) return fail(rcode.notImplemented);
  const additional = bytes.readUInt16BE(10);
  const counts = bytes.readUInt16BE(4) === 1 && bytes.readUInt32BE(6) === 0 && additional <= ADDITIONAL_MAX;
  if (!counts) return fail(rcode.formatError);
  const name = readName(bytes);
  if (name === undefined || name.end + 4 > bytes.length) return fail(rcode.formatError);
  const end = name.end + 4;
  const edns = readEdns(bytes, end, additional);
  if (edns === "malformed") return fail(rcode.formatError);
  const query: Query = {
    id,
    flags,
    question: bytes.subarray(HEADER_BYTES, end),
    name: name.text,
    hasDotInLabel: name.hasDotInLabel,
    type: bytes.readUInt16BE(name.end),
    class: bytes.readUInt16BE(name.end + 2),
    edns,
  };
  return { kind: "query", query };
}

const ignored: ParsedQuery = { kind: "ignored" };

/** Identifies the question: two queries with the same key get the same records. */
export function questionKey({ question, name, hasDotInLabel }: Query): string {
  // Type and class, which the case of letters does not affect.
  const rest = question.toString("latin1", question.length - 4);
  return hasDotInLabel
    ? `${lowerCase(question.toString("latin1", 0, question.length - 4))}${rest}`
    : `${name}\0${rest}`;
}

interface QuestionName {
  readonly text: string;
  readonly hasDotInLabel: boolean;
  readonly end: number;
}

const DOT = 0x2e;

/** The first name of a message has no compression pointer: no name precedes it. */
function readName(bytes: Buffer): QuestionName | undefined {
  let offset = HEADER_BYTES;
  let text = "";
  let hasDotInLabel = false;
  for (;;) {
    const length = bytes[offset];
    if (length === undefined || length > LABEL_BYTES_MAX) return undefined;
    if (length === 0) return { text: lowerCase(text), hasDotInLabel, end: offset + 1 };
    const start = offset + 1;
    offset = start + length;
    if (offset >= bytes.length || offset - HEADER_BYTES >= NAME_BYTES_MAX) return undefined;
    const label = bytes.toString("latin1", start, offset);
    hasDotInLabel ||= bytes.subarray(start, offset).includes(DOT);
    text = text === "" ? label : `${text}.${label}`;
  }
}

/** Of ASCII letters only: RFC 4343. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function readEdns(bytes: Buffer, start: number, count: number): Edns | undefined | "malformed" {
  let offset = start;
  let edns: Edns | undefined;
  for (let i = 0; i < count; i++) {
    const record = readRecordPosition(bytes, offset);
    if (record === undefined) return "malformed";
    offset = record.end;
    if (record.type !== recordType.opt) continue;
    // RFC 6891, section 6.1.1: one OPT record, of the root.
    if (edns !== undefined || bytes[record.start] !== 0) return "malformed";
    edns = {
      payloadBytes: Math.max(record.class, UDP_BYTES_DEFAULT),
      version: (record.ttl >>> 16) & 0xff,
      dnssecOk: (record.ttl & DNSSEC_OK) !== 0,
    };
  }
  return edns;
}

/** A query to another server, with the question's bytes. */
export function encodeQuery(question: Buffer, id: number, flags: number, edns: Edns | undefined): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(edns === undefined ? 0 : 1, 10);
  return Buffer.concat(edns === undefined ? [header, question] : [header, question, encodeOpt(edns, 0)]);
}

/** `extendedRcode`: the upper bits of the code of the response. */
export function encodeOpt({ payloadBytes, version, dnssecOk }: Edns, extendedRcode: number): Buffer {
  const opt = Buffer.alloc(OPT_BYTES);
  opt.writeUInt16BE(recordType.opt, 1);
  opt.writeUInt16BE(payloadBytes, 3);
  opt[5] = extendedRcode;
  opt[6] = version;
  opt.writeUInt16BE(dnssecOk ? DNSSEC_OK : 0, 7);
  return opt;
}

/** Of an OPT record without options. */
export const OPT_BYTES = 11;

/** The question section of a name, which must be encodable. */
export function encodeQuestion(name: string, type: number): Buffer {
  const labels = name === "" ? [] : name.split(".");
  const parts = labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label, "latin1")]);
  return Buffer.concat([...parts, Buffer.of(0, type >> 8, type & 0xff, 0, CLASS_IN)]);
}

/** Whether messages can contain the name: labels of at most 63 bytes, 255 in all. Kubernetes limits only the latter. */
export function isEncodableName(name: string): boolean {
  if (name === "") return true;
  // Two more bytes: the length of the first label, and the root.
  if (name.length + 2 > NAME_BYTES_MAX) return false;
  return name.split(".").every((label) => label !== "" && label.length <= LABEL_BYTES_MAX);
}
