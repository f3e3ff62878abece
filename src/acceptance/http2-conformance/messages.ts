/** RFC 9113, sections 7 and 8, and RFC 7541: error codes, malformed messages, invalid header blocks. */
import { frame, headerBlock, TYPE, uint32 } from "../../testing/http/test-frames.ts";
import {
  type Case,
  COMPRESSION,
  data,
  endHeaders,
  endStream,
  type Fields,
  GET,
  MALFORMED,
  OPEN,
  PONG_OR_CLOSED,
  POST,
  PROTOCOL,
  ping,
  request,
  requestHead,
  reset,
} from "./case.ts";

const without = (name: string): Fields => GET.filter(([field]) => field !== name);
const twice = (name: string): Fields => [...GET, ...GET.filter(([field]) => field === name)];

const malformed: Readonly<Record<string, readonly [section: string, fields: Fields]>> = {
  "a header in upper case": ["8.2", [...GET, ["X-TEST", "ok"]]],
  "an unknown pseudo-header": ["8.3", [...GET, [":test", "ok"]]],
  "a pseudo-header of answers": ["8.3", [...GET, [":status", "200"]]],
  "pseudo-headers after others": ["8.3", [["x-test", "ok"], ...GET]],
  "a header of connections": ["8.2.2", [...GET, ["connection", "keep-alive"]]],
  "te other than trailers": ["8.2.2", [...GET, ["trailers", "test"], ["te", "trailers, deflate"]]],
  "an empty path": ["8.3.1", [...without(":path"), [":path", ""]]],
  "no method": ["8.3.1", without(":method")],
  "no scheme": ["8.3.1", without(":scheme")],
  "no path": ["8.3.1", without(":path")],
  "the method twice": ["8.3.1", twice(":method")],
  "the scheme twice": ["8.3.1", twice(":scheme")],
  "the path twice": ["8.3.1", twice(":path")],
};

const exchanges: readonly Case[] = [
  ["7", "a goaway of unknown code", [...OPEN, frame(TYPE.goaway, 0, 0, uint32(0, 0xff)), ping()], PONG_OR_CLOSED],
  ["7", "a reset of unknown code", [...OPEN, requestHead(), reset(1, 0xff), ping()], PONG_OR_CLOSED],
  [
    "8.1",
    "trailers without END_STREAM",
    [...OPEN, requestHead(), data("test"), request([["x-test", "ok"]], 1, endHeaders)],
    MALFORMED,
  ],
  [
    "8.3",
    "a pseudo-header in trailers",
    [...OPEN, requestHead(), data("test"), request([[":method", "POST"]], 1, endHeaders)],
    MALFORMED,
  ],
  [
    "8.1.1",
    "more than the content-length",
    [...OPEN, requestHead([...POST, ["content-length", "1"]]), data("test", endStream)],
    MALFORMED,
  ],
  [
    "8.1.1",
    "more than the content-length, in several frames",
    [...OPEN, requestHead([...POST, ["content-length", "1"]]), data("test"), data("test", endStream)],
    MALFORMED,
  ],
  [
    "8.4",
    "a push of a client",
    [...OPEN, frame(TYPE.push, endHeaders, 1, Buffer.concat([uint32(3), headerBlock(GET)]))],
    PROTOCOL,
  ],
];

const X_TEST = [0, 0x85, 0xf2, 0xb2, 0x4a, 0x84, 0xff];

/** Bytes after or before the headers of a request. */
const unreadable: Readonly<
  Record<string, { readonly after?: readonly number[]; readonly before?: readonly number[] }>
> = {
  "2.3.3 an index beyond the table": { after: [0xc6] },
  "2.3.3 a name beyond the table": { after: [0x7f, 7, 0] },
  "4.2 another size of the table at the end": { after: [0x21] },
  "5.2 Huffman codes with more than 7 bits of padding": { after: [...X_TEST, 0x84, 0x49, 0x50, 0x9f, 0xff] },
  "5.2 Huffman codes padded by zeros": { after: [...X_TEST, 0x83, 0x49, 0x50, 0x90] },
  "5.2 Huffman codes with an end in their middle": {
    after: [...X_TEST, 0x87, 0x49, 0x51, 0xff, 0xff, 0xff, 0xfa, 0x7f],
  },
  "6.1 index 0": { after: [0x80] },
  "6.3 a table larger than allowed": { before: [0x3f, 0xe2, 0x1f] },
};

export const messageCases: readonly Case[] = [
  ...exchanges,
  ...Object.entries(malformed).map(
    ([name, [section, fields]]): Case => [section, name, [...OPEN, request(fields)], MALFORMED],
  ),
  ...Object.entries(unreadable).map(([name, { before = [], after = [] }]): Case => {
    const block = Buffer.concat([Buffer.from(before), headerBlock(GET), Buffer.from(after)]);
    return ["HPACK", name, [...OPEN, frame(TYPE.headers, endHeaders | endStream, 1, block)], COMPRESSION];
  }),
];

/** Cases that h2spec does not have. */
export const otherMessageCases: readonly Case[] = [
  ["8.2.2", "te: gzip", [...OPEN, request([...GET, ["te", "gzip"]])], MALFORMED],
  [
    "8.3",
    "a pseudo-header among others",
    [...OPEN, request([...without(":path"), ["a", "b"], [":path", "/"]])],
    MALFORMED,
  ],
  [
    "8.1.1",
    "less than the content-length",
    [...OPEN, requestHead([...POST, ["content-length", "5"]]), data("x", endStream)],
    MALFORMED,
  ],
  [
    "8.4",
    "a push of a client within a request",
    [...OPEN, requestHead(), frame(TYPE.push, endHeaders, 1, Buffer.concat([uint32(2), headerBlock(GET)]))],
    PROTOCOL,
  ],
];
