/** Frames that every server must accept. */
import { FLAG, frame, headerBlock, PREFACE, settings, TYPE, uint32 } from "../../testing/http/test-frames.ts";
import {
  ANSWERED,
  type Case,
  data,
  depends,
  EMPTY,
  ENDED,
  endHeaders,
  endStream,
  GET,
  grow,
  OPEN,
  PONG,
  PONG_OR_CLOSED,
  POST,
  padded,
  ping,
  prefer,
  priority,
  request,
  requestHead,
  reset,
  type Step,
} from "./case.ts";

const whole = endStream | endHeaders;
const block = headerBlock(GET);
const NO_WINDOW = settings([4, 0]);
/** A window of one byte, opened after the first byte of the response. */
const ONE_BYTE = ["data 1 1"];
const padding = (length: number): Buffer => Buffer.alloc(length);
const inPieces = (...cuts: readonly number[]): readonly Step[] => [
  frame(TYPE.headers, endStream, 1, block.subarray(0, cuts[0])),
  ...cuts.map((cut, index) =>
    frame(
      TYPE.continuation,
      index === cuts.length - 1 ? endHeaders : 0,
      1,
      block.subarray(cut, cuts[index + 1] ?? block.length),
    ),
  ),
];

const frames: readonly Case[] = [
  ["1", "a preface", [PREFACE, settings([4, 65_535])], ["settings"]],
  ["2", "a priority of an idle stream", [...OPEN, prefer(1), ping()], PONG],
  ["2", "a window after the end of a request", [...OPEN, NO_WINDOW, request(GET), grow(1, 1)], ONE_BYTE],
  ["2", "a priority after the end of a request", [...OPEN, NO_WINDOW, request(GET), prefer(1), grow(1, 1)], ONE_BYTE],
  ["2", "a reset after the end of a request", [...OPEN, request(GET), reset(), ping()], PONG_OR_CLOSED],
  ["2", "a priority of a closed stream", [...OPEN, request(GET), ENDED, prefer(1), ping()], PONG],
  ["3.1", "data", [...OPEN, requestHead(), data("test", endStream)], ANSWERED],
  ["3.1", "data in pieces", [...OPEN, requestHead(), data("test"), data("test", endStream)], ANSWERED],
  [
    "3.1",
    "data with padding",
    [
      ...OPEN,
      requestHead(),
      frame(TYPE.data, padded | endStream, 1, Buffer.concat([Buffer.of(5), Buffer.from("test"), padding(5)])),
    ],
    ANSWERED,
  ],
  ["3.2", "headers", [...OPEN, request(GET)], ANSWERED],
  [
    "3.2",
    "headers with padding",
    [...OPEN, frame(TYPE.headers, whole | padded, 1, Buffer.concat([Buffer.of(8), block, padding(8)]))],
    ANSWERED,
  ],
  [
    "3.2",
    "headers with a priority",
    [...OPEN, frame(TYPE.headers, whole | priority, 1, Buffer.concat([depends(), block]))],
    ANSWERED,
  ],
  ["3.3", "the least weight", [...OPEN, prefer(1, { weight: 0 }), request(GET)], ANSWERED],
  ["3.3", "the greatest weight", [...OPEN, prefer(1, { weight: 255 }), request(GET)], ANSWERED],
  ["3.3", "a dependency", [...OPEN, prefer(3, { on: 1, weight: 0 }), request(GET)], ANSWERED],
  ["3.3", "an exclusive priority", [...OPEN, prefer(1, { exclusive: true, weight: 0 }), request(GET)], ANSWERED],
  ["3.3", "a priority of a later stream", [...OPEN, prefer(3), request(GET)], ANSWERED],
  ["3.4", "a reset", [...OPEN, requestHead(GET), reset(), ping()], PONG_OR_CLOSED],
  [
    "3.5",
    "settings of every kind",
    [
      ...OPEN,
      settings([1, 4096], [2, 1], [3, 100], [4, 65_535], [5, 16_384], [6, 100]),
      { until: ["settings ack", "settings ack"] },
      ping(),
    ],
    PONG,
  ],
  ["3.7", "a ping", [...OPEN, ping()], PONG],
  [
    "3.8",
    "a goaway",
    [...OPEN, frame(TYPE.goaway, 0, 0, Buffer.concat([uint32(0, 0), Buffer.from("bye")])), ping()],
    PONG_OR_CLOSED,
  ],
  ["3.9", "a window of the connection", [...OPEN, grow(0, 1), ping()], PONG],
  ["3.9", "a window of a stream", [...OPEN, request(GET), grow(1, 1)], ANSWERED],
  ["3.10", "a continuation", [...OPEN, ...inPieces(5)], ANSWERED],
  ["3.10", "continuations", [...OPEN, ...inPieces(5, 10)], ANSWERED],
  ["4", "a GET", [...OPEN, request(GET)], ANSWERED],
  ["4", "a HEAD", [...OPEN, request([[":method", "HEAD"], ...GET.slice(1)])], ANSWERED],
  ["4", "a POST", [...OPEN, requestHead(), data("test", endStream)], ANSWERED],
  [
    "4",
    "a POST with trailers",
    [...OPEN, requestHead([...POST, ["trailer", "x-test"]]), data("test"), request([["x-test", "ok"]])],
    ANSWERED,
  ],
];

/** A literal header field: name and value with their lengths, Huffman-coded when 128 is added. */
const literal = (form: number, name: string, value: string): Buffer =>
  Buffer.from([form, ...latin(name), ...latin(value)]);
const latin = (text: string): Buffer => Buffer.from(text, "latin1");
const NAME = "\x0auser-agent";
const NEW_NAME = "\x06x-test";
const VALUE = "\x06h2spec";
const HUFFMAN_NAME = "\x87\xb5\x05\xb1\x61\xcc\x5a\x93";
const HUFFMAN_NEW_NAME = "\x85\xf2\xb2\x4a\x84\xff";
const HUFFMAN_VALUE = "\x84\x9c\x48\xac\xa4";
const INDEXED = 0x40;
const UNINDEXED = 0;
const NEVER = 0x10;

const fields: Readonly<Record<string, Buffer>> = {
  "an indexed field": Buffer.of(0xba),
  "an indexed literal, known name": literal(INDEXED, NAME, VALUE),
  "an indexed literal, known name in Huffman codes": literal(INDEXED, HUFFMAN_NAME, HUFFMAN_VALUE),
  "an indexed literal, new name": literal(INDEXED, NEW_NAME, VALUE),
  "an indexed literal, new name in Huffman codes": literal(INDEXED, HUFFMAN_NEW_NAME, HUFFMAN_VALUE),
  "a literal, known name": literal(UNINDEXED, NAME, VALUE),
  "a literal, known name in Huffman codes": literal(UNINDEXED, HUFFMAN_NAME, HUFFMAN_VALUE),
  "a literal, new name": literal(UNINDEXED, NEW_NAME, VALUE),
  "a literal, new name in Huffman codes": literal(UNINDEXED, HUFFMAN_NEW_NAME, HUFFMAN_VALUE),
  "a literal never to be indexed, known name": literal(NEVER, NAME, VALUE),
  "a literal never to be indexed, known name in Huffman codes": literal(NEVER, HUFFMAN_NAME, HUFFMAN_VALUE),
  "a literal never to be indexed, new name": literal(NEVER, NEW_NAME, VALUE),
  "a literal never to be indexed, new name in Huffman codes": literal(NEVER, HUFFMAN_NEW_NAME, HUFFMAN_VALUE),
};

const sizes: Readonly<Record<string, Buffer>> = {
  "a smaller table": Buffer.of(0x3f, 0x61),
  "a smaller table, then a larger one": Buffer.of(0x3f, 0x61, 0x3f, 0xe1, 0x1f),
};

const compressed = (before: Buffer, after: Buffer): readonly Step[] => [
  ...OPEN,
  frame(TYPE.headers, FLAG.endStream | FLAG.endHeaders, 1, Buffer.concat([before, block, after])),
];

export const genericCases: readonly Case[] = [
  ...frames,
  ...Object.entries(fields).map(([name, bytes]): Case => ["5", name, compressed(EMPTY, bytes), ANSWERED]),
  ...Object.entries(sizes).map(([name, bytes]): Case => ["5", name, compressed(bytes, EMPTY), ANSWERED]),
];
