/** RFC 9113, sections 3 to 5: connection preface, frame format, stream states. */
import { frame, headerBlock, PREFACE, settings, TYPE, uint32 } from "../../testing/http/test-frames.ts";
import {
  ANSWERED,
  type Case,
  COMPRESSION,
  connectionError,
  data,
  depends,
  ENDED,
  endHeaders,
  endStream,
  GET,
  grow,
  long,
  MALFORMED,
  more,
  OPEN,
  PONG,
  POST,
  PROTOCOL,
  ping,
  prefer,
  priority,
  request,
  requestHead,
  reset,
  SIZE,
  STREAM_CLOSED,
  streamError,
} from "./case.ts";

const whole = endStream | endHeaders;
const EIGHT = Buffer.alloc(8);
const UNKNOWN = frame(0x16, 0, 0, EIGHT);
const MAX_STREAMS = 3;
/** Default of a server that does not send the setting. */
const USUAL_STREAMS = 100;

const connections: readonly Case[] = [
  ["3.4", "a preface", [PREFACE, settings([4, 65_535])], ["settings"]],
  ["3.4", "what is no preface", [Buffer.from("INVALID CONNECTION PREFACE\r\n\r\n")], PROTOCOL],
  ["4.1", "an unknown type", [...OPEN, UNKNOWN, ping()], PONG],
  ["4.1", "flags that mean nothing", [...OPEN, ping(0x16)], PONG],
  ["4.1", "the reserved bit", [...OPEN, frame(TYPE.ping, 0x16, 2 ** 31, Buffer.from("a ping b"))], PONG],
  ["4.2", "the largest frame", [...OPEN, requestHead(), data("x".repeat(2 ** 14), endStream)], ANSWERED],
  [
    "4.2",
    "data beyond the largest frame",
    [...OPEN, requestHead(), data("x".repeat(2 ** 14 + 1), endStream)],
    streamError("FRAME_SIZE_ERROR"),
  ],
  ["4.2", "headers beyond the largest frame", [...OPEN, request([...GET, ...long(5)])], SIZE],
  ["4.3", "headers that cannot be read", [...OPEN, frame(TYPE.headers, whole, 1, Buffer.of(0x40))], COMPRESSION],
  ["4.3", "a priority between headers", [...OPEN, request(GET, 1, 0), prefer(1), more(long(1), endHeaders)], PROTOCOL],
  [
    "4.3",
    "headers of another stream between headers",
    [...OPEN, request(GET, 1, 0), request(GET, 3), more(long(1), endHeaders)],
    PROTOCOL,
  ],
];

const states: readonly Case[] = [
  ["5.1", "idle: data", [...OPEN, data("test", endStream)], streamError("PROTOCOL_ERROR", "STREAM_CLOSED")],
  ["5.1", "idle: a reset", [...OPEN, reset()], PROTOCOL],
  ["5.1", "idle: a window", [...OPEN, grow(1, 100)], PROTOCOL],
  ["5.1", "idle: a continuation", [...OPEN, more(GET, endHeaders)], PROTOCOL],
  ["5.1", "half closed: data", [...OPEN, request(GET), data("test", endStream)], STREAM_CLOSED],
  ["5.1", "half closed: headers", [...OPEN, request(GET), request(GET)], STREAM_CLOSED],
  [
    "5.1",
    "half closed: a continuation",
    [...OPEN, request(GET), more(GET, endHeaders)],
    streamError("STREAM_CLOSED", "PROTOCOL_ERROR"),
  ],
  ["5.1", "reset: data", [...OPEN, requestHead(GET), reset(), data("test", endStream)], STREAM_CLOSED],
  ["5.1", "reset: headers", [...OPEN, requestHead(GET), reset(), request(GET)], STREAM_CLOSED],
  [
    "5.1",
    "reset: a continuation",
    [...OPEN, requestHead(GET), reset(), more(long(1), endHeaders)],
    streamError("STREAM_CLOSED", "PROTOCOL_ERROR"),
  ],
  ["5.1", "closed: data", [...OPEN, request(GET), ENDED, data("test", endStream)], STREAM_CLOSED],
  ["5.1", "closed: headers", [...OPEN, request(GET), ENDED, request(GET)], connectionError("STREAM_CLOSED")],
  [
    "5.1",
    "closed: a continuation",
    [...OPEN, request(GET), ENDED, more(long(1), endHeaders)],
    connectionError("STREAM_CLOSED", "PROTOCOL_ERROR"),
  ],
  ["5.1.1", "an even stream", [...OPEN, request(GET, 2)], PROTOCOL],
  ["5.1.1", "a stream before the last", [...OPEN, request(GET, 5), request(GET, 3)], PROTOCOL],
  [
    "5.1.2",
    "more streams than the server's limit",
    [
      ...OPEN,
      settings([4, 0]),
      {
        make: (server) => {
          const count = server.get(MAX_STREAMS) ?? USUAL_STREAMS;
          return Buffer.concat(Array.from({ length: count + 1 }, (_, index) => request(GET, 2 * index + 1)));
        },
      },
    ],
    ["PROTOCOL_ERROR", "REFUSED_STREAM"].flatMap((code) => [`reset * ${code}`, `goaway ${code}`]),
  ],
  [
    "5.3.1",
    "headers that depend on themselves",
    [...OPEN, frame(TYPE.headers, whole | priority, 1, Buffer.concat([depends({ on: 1 }), headerBlock(GET)]))],
    MALFORMED,
  ],
  ["5.3.1", "a priority that depends on itself", [...OPEN, prefer(1, { on: 1 })], MALFORMED],
  ["5.4.1", "an error ends the connection", [...OPEN, frame(TYPE.ping, 0, 3, EIGHT)], ["closed"]],
  ["5.5", "an extension", [...OPEN, UNKNOWN, ping()], PONG],
  ["5.5", "an extension between headers", [...OPEN, request(GET, 1, endStream), UNKNOWN], PROTOCOL],
];

/** Cases that h2spec does not have. */
const others: readonly Case[] = [
  ["3.4", "half a preface", [Buffer.from("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), settings()], PROTOCOL],
  ["3.4", "a preface without settings", [PREFACE, request(GET)], PROTOCOL],
  ["5.4.1", "an error says why", [...OPEN, frame(TYPE.ping, 0, 3, EIGHT)], ["goaway PROTOCOL_ERROR"]],
  [
    "6.8",
    "requests after a goaway",
    [...OPEN, frame(TYPE.goaway, 0, 0, uint32(0, 0)), request(POST)],
    [...ANSWERED, "closed"],
  ],
];

export const streamCases: readonly Case[] = [...connections, ...states];
export const furtherCases: readonly Case[] = others;
