import fc from "fast-check";
import t from "tap";
import {
  base64,
  bigInt64,
  bigUint64,
  binary,
  boolean,
  double,
  duration,
  enumeration,
  float,
  inline,
  int32,
  int64,
  intOrString,
  list,
  map,
  message,
  microTime,
  object,
  optional,
  pointer,
  quantity,
  rawExtension,
  required,
  string,
  time,
  uint32,
} from "../define.ts";
import type { ObjectSchema } from "../schema.ts";
import { decodeProtobuf } from "./decode.ts";
import { encodeProtobuf } from "./encode.ts";
import { ProtobufError } from "./wire.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const reference = object("t/v1.Reference", { name: optional(1, string) });
const kubernetes = object("t/v1.Object", {
  kind: optional(0, string),
  name: optional(1, string),
  count: required(2, int32),
  pointed: pointer(3, int64),
  reference: inline(4, reference),
  target: optional(5, intOrString),
  labels: optional(6, map(string)),
  data: optional(7, map(base64)),
  when: optional(8, time),
  exact: pointer(9, microTime),
  amount: optional(10, map(quantity)),
  wait: pointer(11, duration),
  raw: pointer(12, rawExtension),
  numbers: optional(13, list(int64)),
  self: pointer(14, (): ObjectSchema => kubernetes),
  on: pointer(15, boolean),
});

t.test(
  "encodeProtobuf() always writes scalars and messages that are not pointers, as gogo/protobuf does",
  async (t) => {
    const reference2 = object("t/v1.Small", {
      a: optional(1, string),
      b: optional(2, int32),
      c: optional(3, boolean),
      d: pointer(4, int32),
      e: optional(5, reference),
      f: optional(6, time),
      g: optional(7, list(string)),
    });
    t.equal(hex(encodeProtobuf(reference2, {})), "0a00" + "1000" + "1800" + "2a020a00" + "3200");
    t.equal(
      hex(encodeProtobuf(reference2, { a: "x", b: -1, c: true, d: 0, g: ["", "y"] })),
      "0a0178" + "10ffffffffffffffffff01" + "1801" + "2000" + "2a020a00" + "3200" + "3a00" + "3a0179",
    );
  },
);

const full = {
  name: "inlined",
  count: -3,
  pointed: 0,
  target: "80%",
  labels: { b: "2", a: "1", __proto_: "" },
  data: { bytes: "aGk=", empty: "" },
  when: "2026-01-02T03:04:05Z",
  exact: "1969-12-31T23:59:59.123456Z",
  amount: { cpu: "500m" },
  wait: "1m30s",
  raw: { any: ["thing", 1] },
  numbers: [0, -1, 2 ** 40],
  self: { count: 0, target: 7, on: false },
};

t.test("decodeProtobuf() inverts encodeProtobuf()", async (t) => {
  t.strictSame(decodeProtobuf(kubernetes, encodeProtobuf(kubernetes, full)), full);
});

t.test("encodeProtobuf() escapes raw JSON as Go does", async (t) => {
  const bytes = encodeProtobuf(kubernetes, { raw: { text: "a & b" } });
  t.match(Buffer.from(bytes).toString("latin1"), '{"text":"a \\u0026 b"}');
  t.same((decodeProtobuf(kubernetes, bytes) as { readonly raw?: unknown }).raw, { text: "a & b" });
});

t.test("encodeProtobuf() writes maps sorted by key", async (t) => {
  const shuffled = { ...full, labels: { __proto_: "", a: "1", b: "2" } };
  t.equal(hex(encodeProtobuf(kubernetes, shuffled)), hex(encodeProtobuf(kubernetes, full)));
});

const state = enumeration("t.State", { READY: 0, GONE: 1 });
const grpc = message("t.Message", {
  id: optional(1, string),
  state: optional(2, state),
  states: optional(3, list(state)),
  createdAt: optional(4, bigInt64),
  limit: optional(5, bigUint64),
  ids: optional(6, list(bigInt64)),
  ratio: optional(7, double),
  part: optional(8, float),
  bytes: optional(9, binary),
  small: optional(10, uint32),
  nested: optional(11, (): ObjectSchema => grpc),
  left: optional(12, string, { oneOf: "side" }),
  right: optional(13, int32, { oneOf: "side" }),
  labels: optional(14, map(string)),
});

t.test("encodeProtobuf() omits zeros of proto3 and packs numbers", async (t) => {
  t.equal(hex(encodeProtobuf(grpc, { id: "", state: "READY", createdAt: 0n, small: 0, bytes: new Uint8Array() })), "");
  t.equal(
    hex(encodeProtobuf(grpc, { ids: [1n, -1n], states: ["GONE", "READY"] })),
    "1a020100" + "320b01ffffffffffffffffff01",
  );
  t.equal(hex(encodeProtobuf(grpc, { right: 0 })), "6800", "a oneof member is written even when it is zero");
});

t.test("decodeProtobuf() sets absent scalars of proto3 to zero, but not those of a oneof or messages", async (t) => {
  t.strictSame(decodeProtobuf(grpc, Buffer.alloc(0)), {
    id: "",
    state: "READY",
    createdAt: 0n,
    limit: 0n,
    ratio: 0,
    part: 0,
    bytes: new Uint8Array(),
    small: 0,
  });
});

t.test("decodeProtobuf() keeps 64-bit numbers exact and unknown enum numbers as text", async (t) => {
  const value = {
    createdAt: -(2n ** 63n),
    limit: 2n ** 64n - 1n,
    ids: [2n ** 62n, -5n],
    state: "7",
    ratio: 0.1,
    part: 0.5,
  };
  const back = decodeProtobuf(grpc, encodeProtobuf(grpc, value));
  t.match(back, value);
  const unpacked = Buffer.from("3001" + "3002" + "1801", "hex");
  t.match(decodeProtobuf(grpc, unpacked), { ids: [1n, 2n], states: ["GONE"] });
});

t.test("decodeProtobuf() skips unknown fields and merges repeated occurrences of a message", async (t) => {
  const unknown = ["fa0103616263", "f80101", "f901", "00".repeat(8), "fd0100000000"].join("");
  t.match(decodeProtobuf(grpc, Buffer.from(`${unknown}0a0178`, "hex")), { id: "x" });
  const pieces = Buffer.from("5a030a0178" + "5a021001", "hex");
  t.match(decodeProtobuf(grpc, pieces).nested, { id: "x", state: "GONE" });
});

t.test("decodeProtobuf() rejects malformed input", async (t) => {
  const cases: Readonly<Record<string, string>> = {
    "0a05616263": "a string longer than the message",
    "0aff": "half a length",
    "20ffffffffffffffffffffff01": "a varint of more than ten bytes",
    "00": "field number zero",
    "0801": "a varint where text should be",
    "0b": "a group",
    "5a0a0a0178": "a nested message longer than its parent",
    "390000": "half a double",
    "0affffffff0f": "a length of four gigabytes",
  };
  for (const [bytes, what] of Object.entries(cases)) {
    t.throws(() => decodeProtobuf(grpc, Buffer.from(bytes, "hex")), ProtobufError, what);
  }
  let deep: Buffer = Buffer.from([0x5a, 0]);
  for (let level = 0; level < 1000; level++) {
    deep = Buffer.concat([
      Buffer.from(encodeProtobuf(message("t.Bytes", { next: optional(11, binary) }), { next: deep })),
    ]);
  }
  t.ok(deep.length > 1000);
  t.throws(() => decodeProtobuf(grpc, deep), { message: "message is nested too deeply" });
});

t.test("decodeProtobuf() returns a value or throws a ProtobufError for truncated or damaged bytes", async (t) => {
  const bytes = encodeProtobuf(kubernetes, full);
  fc.assert(
    fc.property(fc.nat(bytes.length), fc.nat(bytes.length - 1), fc.nat(255), (end, index, byte) => {
      const damaged = Buffer.from(bytes.subarray(0, end));
      if (index < end) damaged[index] = byte;
      try {
        decodeProtobuf(kubernetes, damaged);
        return true;
      } catch (error) {
        return error instanceof ProtobufError;
      }
    }),
    { numRuns: 2000 },
  );
  t.pass();
});

t.test("decodeProtobuf() cannot change a prototype through a map key", async (t) => {
  const bytes = encodeProtobuf(kubernetes, { labels: JSON.parse('{"__proto__":"x"}') });
  const labels = decodeProtobuf(kubernetes, bytes).labels as object;
  t.equal(Object.getPrototypeOf(labels), Object.prototype);
  t.same(Object.keys(labels), ["__proto__"]);
});
