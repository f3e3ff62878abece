import fc from "fast-check";
import t from "tap";
import { FrameError, type WebSocketFrame, WebSocketReader } from "./frames.ts";

function maskedFrame(first: number, payload: Uint8Array, mask: readonly number[]): Buffer {
  const length = payload.length;
  const head =
    length < 126
      ? [first, 0x80 | length]
      : length < 65_536
        ? [first, 0xfe, length >> 8, length & 255]
        : [first, 0xff, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  return Buffer.concat([Buffer.from([...head, ...mask]), payload.map((byte, index) => byte ^ mask[index % 4]!)]);
}

function readAll(bytes: Buffer, cuts: readonly number[] = []): readonly WebSocketFrame[] {
  const reader = new WebSocketReader();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  const frames: WebSocketFrame[] = [];
  let at = 0;
  for (const end of ends) {
    frames.push(...reader.read(Buffer.from(bytes.subarray(at, end))));
    at = end;
  }
  return frames;
}

const mask = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });

t.test("the parts of messages are unmasked, whatever their lengths and however the bytes are split", async (t) => {
  const payload = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.constant(new Uint8Array(70_000).fill(7)));
  fc.assert(
    fc.property(fc.array(fc.tuple(payload, mask), { minLength: 1, maxLength: 4 }), fc.array(fc.nat()), (all, cuts) => {
      const bytes = Buffer.concat(all.map(([each, key]) => maskedFrame(0x82, each, key)));
      const messages: Buffer[][] = [];
      for (const frame of readAll(bytes, cuts)) {
        if (frame.type !== "data") throw new Error(frame.type);
        if (frame.first) messages.push([]);
        messages.at(-1)!.push(frame.data);
      }
      t.same(
        messages.map((parts) => Buffer.concat(parts).toString("hex")),
        all.map(([each]) => Buffer.from(each).toString("hex")),
      );
    }),
    { numRuns: 50 },
  );
});

t.test("fragments are one message, with control frames between them", async (t) => {
  const key = [1, 2, 3, 4];
  const frame = (first: number, text: string): Buffer => maskedFrame(first, Buffer.from(text), key);
  const frames = readAll(Buffer.concat([frame(0x01, "a"), frame(0x89, "p"), frame(0x00, "b"), frame(0x80, "c")]));
  t.match(frames, [
    { type: "data", text: true, first: true, last: false, data: Buffer.from("a") },
    { type: "ping", payload: Buffer.from("p") },
    { type: "data", text: true, first: false, last: false, data: Buffer.from("b") },
    { type: "data", text: true, first: false, last: true, data: Buffer.from("c") },
  ]);
  t.match(readAll(frame(0x88, "\u0003\u00e8")), [{ type: "close" }]);
  t.match(readAll(frame(0x88, "")), [{ type: "close", code: undefined }]);
});

t.test("violations throw a FrameError", async (t) => {
  const key = [1, 2, 3, 4];
  const frame = (first: number, text = ""): Buffer => maskedFrame(first, Buffer.from(text), key);
  const invalid: Readonly<Record<string, Buffer>> = {
    "no mask": Buffer.from([0x82, 0]),
    "reserved bits": frame(0xc2),
    "a reserved opcode": frame(0x83),
    "a reserved control opcode": frame(0x8b),
    "a continuation without a start": frame(0x80),
    "a start within a message": Buffer.concat([frame(0x02), frame(0x82)]),
    "a fragmented ping": frame(0x09),
    "a long ping": frame(0x89, "x".repeat(126)),
    "a close frame of one byte": frame(0x88, "x"),
    "a length beyond 2^53": Buffer.from([0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
  };
  for (const [name, bytes] of Object.entries(invalid)) t.throws(() => readAll(bytes), FrameError, name);
});

t.test("arbitrary bytes either are frames or throw a FrameError", async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.array(fc.nat()), (bytes, cuts) => {
      try {
        readAll(Buffer.from(bytes), cuts);
      } catch (error) {
        t.type(error, FrameError);
      }
    }),
  );
});
