/**
 * Responses of other servers. Their records are passed on byte for byte, because a library that decodes and encodes
 * them again changes labels that are not UTF-8 and types that it does not support. Only what a proxy must change is
 * changed: header, question, TTLs and the OPT record.
 */
import { flag, HEADER_BYTES, rcode, recordType } from "./constants.ts";
import { OPT_BYTES, type Query } from "./query.ts";
import { readRecordPosition, skipName } from "./record-positions.ts";
import { finishResponse, type Protocol, responseBytesMax } from "./response.ts";

export interface UpstreamResponse {
  /** Of the header; without the upper bits of an OPT record. */
  readonly rcode: number;
  readonly truncated: boolean;
  /** Up to the end of the last record that is passed on. */
  readonly bytes: Buffer;
  readonly questionEnd: number;
  /** Of answers, authorities and additional records, without the OPT record. */
  readonly counts: readonly [number, number, number];
  /** Ends of the records and offsets of their TTLs, in turn. */
  readonly positions: Uint16Array;
  /** How long the response may be cached, in seconds; 0 not at all. */
  readonly ttl: number;
}

/** Records of a response of 64 KiB, of the smallest size. */
const RECORDS_MAX = 65_535 / 11;

/** Undefined when it is malformed, or not a response to the question. */
export function parseUpstreamResponse(bytes: Buffer, id: number, question: Buffer): UpstreamResponse | undefined {
  if (bytes.length < HEADER_BYTES || bytes.readUInt16BE(0) !== id) return undefined;
  const flags = bytes.readUInt16BE(2);
  if ((flags & (flag.response | OPCODE_MASK)) !== flag.response || bytes.readUInt16BE(4) !== 1) return undefined;
  const name = skipName(bytes, HEADER_BYTES);
  const questionEnd = (name ?? 0) + 4;
  if (name === undefined || !isSameQuestion(bytes.subarray(HEADER_BYTES, questionEnd), question)) return undefined;
  const records = readRecords(bytes, questionEnd);
  if (records === undefined) return undefined;
  const { counts, positions, end } = records;
  const code = flags & RCODE_MASK;
  return {
    rcode: code,
    truncated: (flags & flag.truncated) !== 0,
    // A copy, because the socket's buffer may be much larger.
    bytes: Buffer.from(bytes.subarray(0, end)),
    questionEnd,
    counts,
    positions: Uint16Array.from(positions),
    ttl: computeTtl(code, counts[0], records),
  };
}

const OPCODE_MASK = 0x7800;
const RCODE_MASK = 0xf;

interface Records {
  readonly counts: [number, number, number];
  readonly positions: number[];
  readonly end: number;
  /** Smallest of the answers. */
  readonly answerTtl: number;
  /** For a negative response, from its SOA record: RFC 2308, section 5. Undefined: it has none. */
  readonly negativeTtl: number | undefined;
}

/** Records after the OPT record are dropped: without it, compression pointers to them would be wrong. */
function readRecords(bytes: Buffer, start: number): Records | undefined {
  const counts: [number, number, number] = [0, 0, 0];
  const positions: number[] = [];
  let [offset, end, answerTtl] = [start, start, Number.POSITIVE_INFINITY];
  let negativeTtl: number | undefined;
  let afterOpt = false;
  for (const section of [0, 1, 2] as const) {
    const count = bytes.readUInt16BE(6 + 2 * section);
    if (count > RECORDS_MAX) return undefined;
    for (let i = 0; i < count; i++) {
      const record = readRecordPosition(bytes, offset);
      if (record === undefined) return undefined;
      offset = record.end;
      if (record.type === recordType.opt) afterOpt = true;
      if (afterOpt) continue;
      counts[section]++;
      positions.push(record.end, record.ttlOffset);
      end = record.end;
      if (section === 0) answerTtl = Math.min(answerTtl, toTtl(record.ttl));
      if (section === 1 && record.type === recordType.soa && record.end - record.dataOffset >= SOA_BYTES_MIN) {
        negativeTtl = Math.min(toTtl(record.ttl), toTtl(bytes.readUInt32BE(record.end - 4)));
      }
    }
  }
  return { counts, positions, end, answerTtl, negativeTtl };
}

/** Two names of the root and five numbers. */
const SOA_BYTES_MIN = 22;

/** RFC 2181, section 8: a TTL with the highest bit is zero. */
function toTtl(value: number): number {
  return value > 0x7fffffff ? 0 : value;
}

function computeTtl(code: number, answers: number, { answerTtl, negativeTtl }: Records): number {
  if (code === rcode.noError && answers > 0) return answerTtl;
  if (code === rcode.noError || code === rcode.nameError) return negativeTtl ?? 0;
  return 0;
}

function isSameQuestion(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!];
    if (x !== y && (i >= a.length - 4 || toLower(x) !== toLower(y))) return false;
  }
  return true;
}

function toLower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
}

/** Converts it to the response to a client, after it was in the cache for some time. */
export function adaptResponse(
  { bytes, questionEnd, counts, positions, rcode: code, truncated }: UpstreamResponse,
  query: Query,
  protocol: Protocol,
  { ageSeconds, ttlMin = 0, ttlMax = Number.POSITIVE_INFINITY }: TtlChange,
): Buffer {
  const bytesMax = responseBytesMax(query, protocol) - (query.edns === undefined ? 0 : OPT_BYTES);
  const kept = fitRecords(positions, bytesMax);
  const end = kept === 0 ? questionEnd : positions[2 * kept - 2]!;
  const copy = Buffer.allocUnsafe(end + OPT_BYTES);
  copy.set(bytes.subarray(0, end));
  // The client may use 0x20: it expects its own upper and lower case.
  copy.set(query.question, HEADER_BYTES);
  for (let i = 0; i < kept; i++) {
    const offset = positions[2 * i + 1]!;
    const ttl = toTtl(copy.readUInt32BE(offset)) - ageSeconds;
    copy.writeUInt32BE(Math.max(Math.min(ttl, ttlMax), ttlMin, 0), offset);
  }
  const answers = Math.min(counts[0], kept);
  const authorities = Math.min(counts[1], kept - answers);
  const isCut = kept < counts[0] + counts[1];
  return finishResponse(query, copy, end, {
    rcode: code,
    flags: isCut || truncated ? flag.truncated : 0,
    counts: [answers, authorities, kept - answers - authorities],
  });
}

export interface TtlChange {
  readonly ageSeconds: number;
  readonly ttlMin?: number;
  readonly ttlMax?: number;
}

/** The number of records that fit. */
function fitRecords(positions: Uint16Array, bytesMax: number): number {
  const records = positions.length / 2;
  if (records === 0 || positions[2 * records - 2]! <= bytesMax) return records;
  let kept = 0;
  while (positions[2 * kept]! <= bytesMax) kept++;
  return kept;
}
