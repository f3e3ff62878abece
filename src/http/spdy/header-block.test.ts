import { constants, createDeflate } from "node:zlib";
import fc from "fast-check";
import t from "tap";
import { dictionary } from "./dictionary.ts";
import { SpdyError } from "./frames.ts";
import { HeaderDecoder, HeaderEncoder } from "./header-block.ts";

/** Compresses blocks in one stream, as other implementations do. */
function compressor(): (block: Buffer) => Promise<Buffer> {
  const deflate = createDeflate({ dictionary, flush: constants.Z_SYNC_FLUSH });
  return (block) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      deflate.removeAllListeners("data");
      deflate.on("data", (chunk: Buffer) => chunks.push(chunk));
      deflate.write(block, () => setImmediate(() => resolve(Buffer.concat(chunks))));
    });
}

function block(count: number, ...texts: readonly string[]): Buffer {
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  return Buffer.concat([number(count), ...texts.flatMap((text) => [number(text.length), Buffer.from(text)])]);
}

t.test("headers are decoded as they were encoded, block after block", async (t) => {
  const token = fc.stringMatching(/^[a-z][a-z-]{0,20}$/);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(token, fc.stringMatching(/^[ -~]{0,40}$/)), { maxLength: 5 }),
      async (all) => {
        const encoder = new HeaderEncoder();
        using decoder = new HeaderDecoder();
        for (const headers of all) t.same({ ...(await decoder.decode(encoder.encode(headers))) }, { ...headers });
      },
    ),
    { numRuns: 30 },
  );
});

t.test("compressed blocks with the dictionary of SPDY/3 are decoded, names in lower case", async (t) => {
  const compress = compressor();
  using decoder = new HeaderDecoder();
  t.same({ ...(await decoder.decode(await compress(block(1, "StreamType", "stdin")))) }, { streamtype: "stdin" });
  t.same(
    { ...(await decoder.decode(await compress(block(2, "port", "80", "requestid", "1")))) },
    { port: "80", requestid: "1" },
  );
  t.same({ ...(await decoder.decode(await compress(block(0)))) }, {});
});

t.test("invalid and too large blocks are rejected with a SpdyError", async (t) => {
  const blocks: Readonly<Record<string, Buffer>> = {
    "no zlib stream": Buffer.from("garbage"),
    "a count without headers": await compressor()(block(3)),
    "a repeated name": await compressor()(block(2, "a", "1", "a", "2")),
    "an empty name": await compressor()(block(1, "", "1")),
    "too many headers": await compressor()(block(101)),
    "a bomb": await compressor()(Buffer.alloc(1_000_000)),
    "an incomplete block": (await compressor()(block(1, "a", "b"))).subarray(0, 8),
  };
  for (const [name, bytes] of Object.entries(blocks)) {
    using decoder = new HeaderDecoder();
    await t.rejects(decoder.decode(bytes), SpdyError, name);
  }
});
