import fc from "fast-check";
import t from "tap";
import { ProtobufError, Reader, ReverseWriter } from "./wire.ts";

t.test("ReverseWriter and Reader agree on every varint", async (t) => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
      const writer = new ReverseWriter();
      writer.int64(value);
      return BigInt.asIntN(64, new Reader(writer.take()).uint64()) === value;
    }),
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffffff }), (value) => {
      const writer = new ReverseWriter();
      writer.uint32(value);
      return new Reader(writer.take()).uint32() === value;
    }),
  );
  t.pass();
});

t.test("ReverseWriter keeps the written bytes when it grows", async (t) => {
  const writer = new ReverseWriter();
  const big = "é".repeat(10_000);
  writer.string("tail");
  writer.string(big);
  writer.double(1.5);
  writer.float(0.5);
  const reader = new Reader(writer.take());
  t.equal(reader.float(), 0.5);
  t.equal(reader.double(), 1.5);
  t.equal(reader.string(reader.end), big);
  t.equal(reader.string(reader.end), "tail");
  t.equal(writer.length, 0);
});

t.test("Reader rejects truncated input and overlong varints", async (t) => {
  const endless = Buffer.alloc(20, 0xff);
  t.throws(() => new Reader(endless).uint64(), ProtobufError);
  t.throws(() => new Reader(endless).uint32(), ProtobufError);
  t.throws(() => new Reader(Buffer.from([0x80])).uint32(), { message: "unexpected EOF" });
  t.throws(() => new Reader(Buffer.from([5, 1])).string(2), { message: "unexpected EOF" });
  t.throws(() => new Reader(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f])).bytes(5), { message: "unexpected EOF" });
  t.throws(() => new Reader(Buffer.alloc(7)).double(), { message: "unexpected EOF" });
  t.throws(() => new Reader(Buffer.alloc(1)).skip(3, 1), { message: "illegal wireType 3" });
});
