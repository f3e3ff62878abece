import { Buffer } from "node:buffer";
import t from "tap";
import { toUnpooledBuffer } from "./unpooled-buffer.ts";

t.test("toUnpooledBuffer() keeps nothing in memory but the bytes", async (t) => {
  for (const bytes of [Buffer.from("cut from a pool"), new Uint8Array(100).subarray(5, 9), Buffer.alloc(0)]) {
    const own = toUnpooledBuffer(bytes);
    t.same(own, Buffer.from(bytes));
    t.equal(own.buffer.byteLength, bytes.length);
  }
});

t.test("toUnpooledBuffer() does not copy a buffer that is not pooled", async (t) => {
  const alone = Buffer.allocUnsafeSlow(5000);
  t.equal(toUnpooledBuffer(alone).buffer, alone.buffer);
});
