import fc from "fast-check";
import t from "tap";
import {
  CONTROL_BYTES_MAX,
  dataHead,
  type Frame,
  FrameReader,
  goAwayFrame,
  pingFrame,
  rstStreamFrame,
  SpdyError,
  synReplyFrame,
  synStreamFrame,
  windowUpdateFrame,
} from "./frames.ts";

function readAll(bytes: Buffer, cuts: readonly number[] = []): readonly Frame[] {
  const reader = new FrameReader();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  const frames: Frame[] = [];
  let at = 0;
  for (const end of ends) {
    for (const frame of reader.read(Buffer.from(bytes.subarray(at, end)))) frames.push(frame);
    at = end;
  }
  return frames;
}

/** Parts of the data of one frame, joined. */
function joined(frames: readonly Frame[]): readonly unknown[] {
  const result: unknown[] = [];
  let pending: Buffer[] = [];
  for (const [index, frame] of frames.entries()) {
    if (frame.type !== "data") {
      result.push(frame);
      continue;
    }
    pending.push(frame.data);
    const next = frames[index + 1];
    if (!frame.fin && next?.type === "data" && next.stream === frame.stream) continue;
    result.push([frame.stream, Buffer.concat(pending).toString("hex"), frame.fin]);
    pending = [];
  }
  return result;
}

const block = Buffer.from("headers");
const sample = Buffer.concat([
  synStreamFrame(1, block, false),
  synReplyFrame(1, block),
  dataHead(1, 5, false),
  Buffer.from("hello"),
  pingFrame(7),
  dataHead(1, 0, true),
  windowUpdateFrame(1, 10),
  rstStreamFrame(1, 5),
  goAwayFrame(1, 0),
]);

t.test("frames are read as they were written, however the bytes are split", async (t) => {
  const whole = joined(readAll(sample));
  t.match(whole, [
    { type: "syn_stream", stream: 1, fin: false, headerBlock: block },
    { type: "syn_reply", stream: 1, headerBlock: block },
    [1, Buffer.from("hello").toString("hex"), false],
    { type: "ping", id: 7 },
    [1, "", true],
    { type: "window_update", stream: 1, delta: 10 },
    { type: "rst_stream", stream: 1, code: 5 },
    { type: "goaway", lastStream: 1, code: 0 },
  ]);
  fc.assert(fc.property(fc.array(fc.nat()), (cuts) => t.same(joined(readAll(sample, cuts)), whole)));
});

t.test("settings contain the initial window, and frames of unknown types are skipped", async (t) => {
  const settings = Buffer.from("8003000400000014000000020000000400000001000000070000ffff", "hex");
  t.match(readAll(settings), [{ type: "settings", initialWindow: 65_535 }]);
  t.same(readAll(Buffer.from("8003001100000002abcd", "hex")), []);
});

t.test("invalid frames end the reading with a SpdyError", async (t) => {
  const invalid: Readonly<Record<string, string>> = {
    "another version": "8002000600000004",
    "data of stream 0": "0000000000000001",
    "a ping without its number": "8003000600000002abcd",
    "a stream 0": "80030002000000040000000000",
    "settings that are too short": "80030004000000040000000f",
    "a control frame that is too large": `800300010${(CONTROL_BYTES_MAX + 1).toString(16).padStart(7, "0")}`,
  };
  for (const [name, hex] of Object.entries(invalid)) t.throws(() => readAll(Buffer.from(hex, "hex")), SpdyError, name);
});

t.test("arbitrary bytes either are frames or throw a SpdyError, and data is never kept", async (t) => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  fc.assert(
    fc.property(bytes, fc.array(fc.nat()), (tail, cuts) => {
      try {
        for (const frame of readAll(Buffer.concat([sample, tail]), cuts)) t.ok(frame.type);
      } catch (error) {
        t.type(error, SpdyError);
      }
    }),
  );
});
