/** Fuzzes the reader of SPDY frames: split bytes are the same frames as whole ones. */
import { isDeepStrictEqual } from "node:util";
import { fuzz } from "../../testing/schema/fuzz-harness.ts";
import { dataHead, type Frame, FrameReader, goAwayFrame, pingFrame, SpdyError, synStreamFrame } from "./frames.ts";
import { HeaderEncoder } from "./header-block.ts";

const headers = new HeaderEncoder().encode({ streamtype: "data", port: "80", requestid: "1" });

fuzz({
  name: "spdy",
  samples: [
    Buffer.concat([synStreamFrame(1, headers, false), dataHead(1, 5, true), Buffer.from("hello"), pingFrame(1)]),
    Buffer.concat([Buffer.from("80030004000000140000000200000004000000010000000700010000", "hex"), goAwayFrame(3, 0)]),
  ],
  words: ["80030001", "80030002", "80030003", "80030008", "80030009", "00ffffff", "7fffffff", "ffffffff"].map((hex) =>
    Buffer.from(hex, "hex"),
  ),
  read(input) {
    const whole = describe([input]);
    const middle = input.length >>> 1;
    const parts = [input.subarray(0, middle), input.subarray(middle)];
    if (!isDeepStrictEqual(describe(parts), whole)) throw new Error("split bytes are other frames");
    return whole;
  },
  isRefusal: (error) => error instanceof SpdyError,
});

function describe(chunks: readonly Uint8Array[]): readonly unknown[] {
  const reader = new FrameReader();
  const frames: Frame[] = [];
  for (const chunk of chunks) frames.push(...reader.read(Buffer.from(chunk)));
  const data = Buffer.concat(frames.flatMap((frame) => (frame.type === "data" ? [frame.data] : [])));
  return [data.toString("hex"), ...frames.filter(({ type }) => type !== "data")];
}
