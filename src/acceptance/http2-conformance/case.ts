/** A test case: the frames that a client sends, and the events that RFC 9113 allows then. */
import {
  FLAG,
  type Frame,
  frame,
  headerBlock,
  PREFACE,
  settings,
  TYPE,
  uint32,
} from "../../testing/http/test-frames.ts";

export const { ack, endStream, endHeaders, padded, priority } = FLAG;
export const EMPTY = Buffer.alloc(0);

export type Fields = readonly (readonly [string, string])[];

/**
 * `ping DATA`, `settings`, `settings ack`, `headers STREAM STATUS`, `data STREAM LENGTH`, `end STREAM`,
 * `reset STREAM CODE`, `goaway CODE`, `closed`.
 */
export type Event = string;

/** Bytes to send; events to wait for, each as often as listed; or bytes that depend on the server's settings. */
export type Step =
  | Uint8Array
  | { readonly until: readonly Event[] }
  | { readonly make: (settings: Settings) => Buffer };

/** The server's settings by identifier. */
export type Settings = ReadonlyMap<number, number>;

/** `expected`: one of these events must arrive. */
export type Case = readonly [section: string, name: string, steps: readonly Step[], expected: readonly Event[]];

/** Both sides have sent and acknowledged their settings. */
export const OPEN: readonly Step[] = [PREFACE, settings(), { until: ["settings", "settings ack"] }];

export const GET: Fields = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/"],
  [":authority", "localhost"],
];
export const POST: Fields = [[":method", "POST"], ...GET.slice(1)];

/** Header fields that fill a frame. */
export function long(count: number): Fields {
  return Array.from({ length: count }, (_, index) => [`x-long${index}`, "x".repeat(4000)] as const);
}

export function request(fields: Fields, stream = 1, flags: number = endStream | endHeaders): Buffer {
  return frame(TYPE.headers, flags, stream, headerBlock(fields));
}

/** The HEADERS frame of a request whose body follows. */
export function requestHead(fields: Fields = POST, stream = 1): Buffer {
  return request(fields, stream, endHeaders);
}

export function data(bytes: string, flags = 0, stream = 1): Buffer {
  return frame(TYPE.data, flags, stream, Buffer.from(bytes));
}

export function more(fields: Fields, flags = 0, stream = 1): Buffer {
  return frame(TYPE.continuation, flags, stream, headerBlock(fields));
}

export function reset(stream = 1, code = 8): Buffer {
  return frame(TYPE.reset, 0, stream, uint32(code));
}

export function grow(stream: number, bytes: number): Buffer {
  return frame(TYPE.window, 0, stream, uint32(bytes));
}

/** The payload of a PRIORITY frame; the weight is the byte plus one. */
export function depends({ on = 0, weight = 255, exclusive = false } = {}): Buffer {
  return Buffer.concat([uint32(exclusive ? on + 2 ** 31 : on), Buffer.of(weight)]);
}

export function prefer(stream: number, how: Parameters<typeof depends>[0] = {}): Buffer {
  return frame(TYPE.priority, 0, stream, depends(how));
}

const PING = "a ping by";
export const ping = (flags = 0, bytes = PING.slice(0, 8)): Buffer => frame(TYPE.ping, flags, 0, Buffer.from(bytes));

export const ANSWERED = ["headers 1 200"];
export const PONG = [`ping ${Buffer.from(PING.slice(0, 8)).toString("latin1")}`];
export const PONG_OR_CLOSED = [...PONG, "closed"];
export const ENDED: Step = { until: ["end 1"] };
export const ACKNOWLEDGED: Step = { until: ["settings ack", "settings ack"] };

/** The connection closes, after a GOAWAY with one of these codes or without one. */
export function connectionError(...codes: readonly string[]): readonly Event[] {
  return [...codes.map((code) => `goaway ${code}`), "closed"];
}

/** The stream or the connection closes. */
export function streamError(...codes: readonly string[]): readonly Event[] {
  return [...codes.map((code) => `reset 1 ${code}`), ...connectionError(...codes)];
}

export const PROTOCOL = connectionError("PROTOCOL_ERROR");
export const SIZE = connectionError("FRAME_SIZE_ERROR");
export const FLOW = connectionError("FLOW_CONTROL_ERROR");
export const COMPRESSION = connectionError("COMPRESSION_ERROR");
export const MALFORMED = streamError("PROTOCOL_ERROR");
export const STREAM_CLOSED = streamError("STREAM_CLOSED");

const CODES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
];

export function eventsOf({ type, flags, stream, payload }: Frame): readonly Event[] {
  const ends = (flags & endStream) !== 0 ? [`end ${stream}`] : [];
  switch (type) {
    case TYPE.ping:
      return (flags & ack) !== 0 ? [`ping ${payload.toString("latin1")}`] : [];
    case TYPE.settings:
      return [(flags & ack) !== 0 ? "settings ack" : "settings"];
    case TYPE.headers:
      return [`headers ${stream} ${statusOf(payload)}`, ...ends];
    case TYPE.data:
      return [`data ${stream} ${payload.length}`, ...ends];
    case TYPE.reset: {
      const code = CODES[payload.readUInt32BE(0)];
      return [`reset ${stream} ${code}`, ...(code === "NO_ERROR" ? [`end ${stream}`] : [])];
    }
    case TYPE.goaway:
      return [`goaway ${CODES[payload.readUInt32BE(4)]}`];
    default:
      return [];
  }
}

/** HPACK's static table has `:status: 200` at index 8 and 400 at 12; servers send the status first. */
function statusOf(block: Buffer): string {
  const first = block.find((byte) => byte >= 0x80);
  return first === 0x88 ? "200" : first === 0x8c ? "400" : "other";
}

export function settingsIn({ payload }: Frame): Settings {
  const found = new Map<number, number>();
  for (let at = 0; at + 6 <= payload.length; at += 6) found.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  return found;
}
