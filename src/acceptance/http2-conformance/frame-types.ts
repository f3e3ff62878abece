/** RFC 9113, section 6: misplaced and malformed frames of each type. */
import { frame, headerBlock, settings, TYPE, uint32 } from "../../testing/http/test-frames.ts";
import {
  ACKNOWLEDGED,
  ANSWERED,
  ack,
  type Case,
  connectionError,
  data,
  EMPTY,
  endHeaders,
  endStream,
  FLOW,
  GET,
  grow,
  long,
  MALFORMED,
  more,
  OPEN,
  PONG,
  POST,
  PROTOCOL,
  padded,
  ping,
  prefer,
  request,
  requestHead,
  reset,
  SIZE,
  STREAM_CLOSED,
  streamError,
} from "./case.ts";

const LARGEST = 2 ** 31 - 1;
const INITIAL_WINDOW = 4;
const block = headerBlock(GET);
const FIELD = long(1);
const ONE_BYTE = ["data 1 1"];

const messages: readonly Case[] = [
  ["6.1", "data of the connection", [...OPEN, data("test", endStream, 0)], PROTOCOL],
  ["6.1", "data after the end", [...OPEN, request(POST), data("test", endStream)], STREAM_CLOSED],
  [
    "6.1",
    "data shorter than its padding",
    [
      ...OPEN,
      requestHead([...POST, ["content-length", "4"]]),
      frame(TYPE.data, padded | endStream, 1, Buffer.from("\x06Test", "latin1")),
    ],
    PROTOCOL,
  ],
  [
    "6.2",
    "a priority before the end of headers",
    [...OPEN, request(GET, 1, 0), prefer(1), more(FIELD, endHeaders)],
    PROTOCOL,
  ],
  [
    "6.2",
    "another stream before the end of headers",
    [...OPEN, request(GET, 1, 0), request(GET, 3), more(FIELD, endHeaders)],
    PROTOCOL,
  ],
  ["6.2", "headers of the connection", [...OPEN, request(GET, 0)], PROTOCOL],
  [
    "6.2",
    "headers shorter than their padding",
    [
      ...OPEN,
      frame(TYPE.headers, padded | endHeaders | endStream, 1, Buffer.concat([Buffer.of(block.length + 2), block])),
    ],
    MALFORMED,
  ],
  ["6.3", "a priority of the connection", [...OPEN, prefer(0)], PROTOCOL],
  [
    "6.3",
    "a priority of another size",
    [...OPEN, request(GET), frame(TYPE.priority, 0, 1, uint32(0x8000_0001))],
    streamError("FRAME_SIZE_ERROR"),
  ],
  ["6.4", "a reset of the connection", [...OPEN, reset(0)], PROTOCOL],
  ["6.4", "a reset of an idle stream", [...OPEN, reset(1)], PROTOCOL],
  [
    "6.4",
    "a reset of another size",
    [...OPEN, request(GET), frame(TYPE.reset, 0, 1, Buffer.alloc(3))],
    streamError("FRAME_SIZE_ERROR"),
  ],
];

const control: readonly Case[] = [
  ["6.5", "an acknowledgement that says more", [...OPEN, frame(TYPE.settings, ack, 0, Buffer.alloc(1))], SIZE],
  ["6.5", "settings of a stream", [...OPEN, frame(TYPE.settings, 0, 1, Buffer.of(0, 3, 0, 0, 0, 100))], PROTOCOL],
  [
    "6.5",
    "settings of another size",
    [...OPEN, frame(TYPE.settings, 0, 0, Buffer.of(0, 3, 0))],
    connectionError("FRAME_SIZE_ERROR", "PROTOCOL_ERROR"),
  ],
  ["6.5.2", "a push setting other than 0 and 1", [...OPEN, settings([2, 2])], PROTOCOL],
  ["6.5.2", "a window beyond the largest", [...OPEN, settings([INITIAL_WINDOW, LARGEST + 1])], FLOW],
  ["6.5.2", "frames smaller than the least", [...OPEN, settings([5, 2 ** 14 - 1])], PROTOCOL],
  ["6.5.2", "frames larger than the largest", [...OPEN, settings([5, 2 ** 24])], PROTOCOL],
  ["6.5.2", "an unknown setting", [...OPEN, settings([0xff, 1]), ping()], PONG],
  [
    "6.5.3",
    "a setting twice: the last counts",
    [...OPEN, settings([INITIAL_WINDOW, 100], [INITIAL_WINDOW, 1]), ACKNOWLEDGED, request(GET)],
    ONE_BYTE,
  ],
  ["6.5.3", "settings are acknowledged", [...OPEN, settings([2, 0]), ACKNOWLEDGED, ping()], PONG],
  ["6.7", "a ping", [...OPEN, ping()], PONG],
  ["6.7", "an acknowledgement without a ping", [...OPEN, ping(ack, "nonsense"), ping()], PONG],
  ["6.7", "a ping of a stream", [...OPEN, frame(TYPE.ping, 0, 1, Buffer.alloc(8))], PROTOCOL],
  ["6.7", "a ping of another size", [...OPEN, frame(TYPE.ping, 0, 0, Buffer.alloc(6))], SIZE],
  ["6.8", "a goaway of a stream", [...OPEN, frame(TYPE.goaway, 0, 1, uint32(0, 0))], PROTOCOL],
];

const windows: readonly Case[] = [
  ["6.9", "a window that grows by nothing", [...OPEN, grow(0, 0)], PROTOCOL],
  ["6.9", "a stream's window that grows by nothing", [...OPEN, requestHead(GET), grow(1, 0)], MALFORMED],
  ["6.9", "a window of another size", [...OPEN, frame(TYPE.window, 0, 0, Buffer.of(0, 0, 1))], SIZE],
  ["6.9.1", "a window of one byte", [...OPEN, settings([INITIAL_WINDOW, 1]), ACKNOWLEDGED, request(GET)], ONE_BYTE],
  ["6.9.1", "a window that overflows", [...OPEN, grow(0, LARGEST), grow(0, LARGEST)], ["goaway FLOW_CONTROL_ERROR"]],
  [
    "6.9.1",
    "a stream's window that overflows",
    [...OPEN, requestHead(GET), grow(1, LARGEST), grow(1, LARGEST)],
    ["reset 1 FLOW_CONTROL_ERROR"],
  ],
  [
    "6.9.2",
    "a window that grows for streams that are open",
    [...OPEN, settings([INITIAL_WINDOW, 0]), ACKNOWLEDGED, request(GET), settings([INITIAL_WINDOW, 1])],
    ONE_BYTE,
  ],
  [
    "6.9.2",
    "a window below zero",
    [
      ...OPEN,
      settings([INITIAL_WINDOW, 3]),
      ACKNOWLEDGED,
      request(GET),
      { until: ["data 1 3"] },
      settings([INITIAL_WINDOW, 2]),
      { until: ["settings ack", "settings ack", "settings ack"] },
      grow(1, 2),
    ],
    ONE_BYTE,
  ],
  [
    "6.9.2",
    "a window beyond the largest",
    [...OPEN, frame(TYPE.settings, 0, 0, Buffer.of(0, INITIAL_WINDOW, 0x80, 0, 0, 0))],
    FLOW,
  ],
];

const continuations: readonly Case[] = [
  ["6.10", "continuations", [...OPEN, request(GET, 1, endStream), more(FIELD), more(FIELD, endHeaders)], ANSWERED],
  [
    "6.10",
    "another frame between them",
    [...OPEN, request(POST, 1, 0), more(FIELD), data("test", endStream)],
    PROTOCOL,
  ],
  ["6.10", "one of the connection", [...OPEN, request(GET, 1, endStream), more(FIELD, endHeaders, 0)], PROTOCOL],
  ["6.10", "one after the end of headers", [...OPEN, request(GET), more(FIELD, endHeaders)], PROTOCOL],
  [
    "6.10",
    "one after the last",
    [...OPEN, request(GET, 1, endStream), more(FIELD, endHeaders), more(FIELD, endHeaders)],
    PROTOCOL,
  ],
  [
    "6.10",
    "one after data",
    [...OPEN, request(POST, 1, 0), data("test", endStream), more(FIELD), more(FIELD, endHeaders)],
    PROTOCOL,
  ],
];

export const frameKindCases: readonly Case[] = [...messages, ...control, ...windows, ...continuations];

/** Cases that h2spec does not have. */
export const otherFrameCases: readonly Case[] = [
  [
    "6.10",
    "a continuation of another stream",
    [...OPEN, request(GET, 1, endStream), more([], endHeaders, 3)],
    PROTOCOL,
  ],
  ["6.5", "settings of a stream, empty", [...OPEN, frame(TYPE.settings, 0, 1, EMPTY)], PROTOCOL],
];
