import { createDeflate } from "node:zlib";
import t from "tap";
import { dictionary } from "./dictionary.ts";
import { FrameFilter } from "./frame-filter.ts";
import { dataHead, goAwayFrame, pingFrame, rstStreamFrame, synStreamFrame, windowUpdateFrame } from "./frames.ts";
import { HeaderEncoder } from "./header-block.ts";

const encoder = new HeaderEncoder();
const valid = Buffer.concat([
  synStreamFrame(1, encoder.encode({ streamtype: "error" }), false),
  synStreamFrame(3, encoder.encode({ streamtype: "stdin" }), false),
  dataHead(3, 5, false),
  Buffer.from("hello"),
  pingFrame(1),
  windowUpdateFrame(3, 7),
  Buffer.from("8003000400000014000000020000000400000001000000070001000080030063000000010a", "hex"),
  dataHead(3, 0, true),
  rstStreamFrame(1, 5),
  goAwayFrame(0, 0),
]);

t.test("valid frames pass unchanged, in chunks of any size", async (t) => {
  for (const size of [1, 2, 7, 8, 9, 30, valid.length]) {
    using filter = new FrameFilter();
    const passed: Buffer[] = [];
    for (let at = 0; at < valid.length; at += size) passed.push(await filter.take(valid.subarray(at, at + size)));
    t.equal(Buffer.concat(passed).toString("hex"), valid.toString("hex"), `chunks of ${size}`);
  }
});

t.test("data passes as it arrives, and a control frame only as a whole", async (t) => {
  using filter = new FrameFilter();
  const data = Buffer.concat([dataHead(1, 1000, false), Buffer.alloc(100)]);
  t.equal((await filter.take(data)).buffer, data.buffer, "without a copy");
  t.equal((await filter.take(Buffer.alloc(900))).length, 900);
  t.equal((await filter.take(pingFrame(1).subarray(0, 11))).length, 0);
  t.equal((await filter.take(pingFrame(1).subarray(11))).length, 12);
});

/** A SYN_STREAM whose compressed headers are these bytes. */
async function synStream(headers: Buffer): Promise<Buffer> {
  const deflate = createDeflate({ dictionary });
  deflate.end(headers);
  return synStreamFrame(1, Buffer.concat(await deflate.toArray()), false);
}

t.test("no byte of an invalid frame passes, whatever comes with it", async (t) => {
  const most = Buffer.from("ffffffff", "hex");
  const cases: readonly (readonly [string, Buffer | Promise<Buffer>])[] = [
    ["SETTINGS with more entries than bytes", Buffer.from("8003000400000004ffffffff", "hex")],
    ["SETTINGS of many entries", Buffer.from("8003000400ffffff1fffffff", "hex")],
    ["a header block that claims many headers", synStream(most)],
    ["a header that claims a long name", synStream(Buffer.concat([Buffer.from("00000001", "hex"), most]))],
    ["a header block that inflates to 50 MB", synStream(Buffer.alloc(50_000_000))],
    ["a header block that is no zlib stream", synStreamFrame(1, Buffer.from("garbage"), false)],
    ["a control frame without its stream", Buffer.from("800300010000000400000001", "hex")],
    ["a stream 0", synStreamFrame(0, Buffer.alloc(0), false)],
    ["data of stream 0", dataHead(0, 1, false)],
    ["another version", Buffer.from("800200060000000400000001", "hex")],
  ];
  for (const [name, frame] of cases) {
    using filter = new FrameFilter();
    await t.rejects(async () => await filter.take(Buffer.concat([pingFrame(1), await frame])), /./, name);
    using slow = new FrameFilter();
    let passed = 0;
    await t.rejects(
      async () => {
        for (const byte of await frame) passed += (await slow.take(Buffer.of(byte))).length;
        await slow.take(Buffer.alloc(40_000));
      },
      { name: "SpdyError" },
      name,
    );
    t.equal(passed, 0, name);
  }
});
