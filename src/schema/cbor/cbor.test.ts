import fc from "fast-check";
import t from "tap";
import { decode } from "../decode/decode.ts";
import { base64, double, int64, list, map, object, optional, string, time } from "../define.ts";
import { deepEqual } from "../value/equal.ts";
import { cborDepthMax, decodeCbor } from "./decode.ts";
import { encodeCbor, encodeCborValue } from "./encode.ts";
import { CborError } from "./error.ts";
import { readCborSequence } from "./sequence.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const fromHex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

t.test("encodeCborValue() writes the shortest encoding with the self-described tag", async (t) => {
  const cases: readonly (readonly [unknown, string])[] = [
    [0, "00"],
    [23, "17"],
    [24, "1818"],
    [256, "190100"],
    [65536, "1a00010000"],
    [2 ** 40, "1b0000010000000000"],
    [-1, "20"],
    [-500, "3901f3"],
    [9223372036854775807n, "1b7fffffffffffffff"],
    [1.5, "f93e00"],
    [-0.0000152587890625, "f98100"],
    [2 ** -24, "f90001"],
    [65504.5, "fa477fe080"],
    [1.1, "fb3ff199999999999a"],
    [100000.5, "fa47c35040"],
    ["a", "4161"],
    ["ü", "42c3bc"],
    [new Uint8Array([1, 2]), "d6420102"],
    [[1, [null]], "820181f6"],
    [{ bb: 1, c: true, a: false }, "a34161f44163f542626201"],
    [{}, "a0"],
  ];
  for (const [value, wanted] of cases) t.equal(hex(encodeCborValue(value)), `d9d9f7${wanted}`);
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, () => 1, Symbol("x"), undefined]) {
    t.throws(() => encodeCborValue([bad]), CborError);
  }
});

const thing = object("t/v1.Thing", {
  name: optional(1, string),
  data: optional(2, map(base64)),
  ratio: optional(3, double),
  counts: optional(4, list(int64)),
  at: optional(5, time),
});

t.test("encodeCbor() follows the schema: bytes are byte strings, numbers stay floats", async (t) => {
  const value = { name: "x", data: { key: "AQI=" }, ratio: 2, counts: [3] };
  const bytes = encodeCbor(thing, value);
  t.equal(
    hex(bytes),
    "d9d9f7 a5 426174 f6 4464617461 a1 436b6579 d6420102 446e616d65 4178 45726174696f f94000 46636f756e7473 8103".replaceAll(
      " ",
      "",
    ),
  );
  t.same(decode(thing, decodeCbor(bytes)).value, value);
});

t.test("decodeCbor() accepts other encodings of the same value", async (t) => {
  const cases: readonly (readonly [string, unknown])[] = [
    ["6161", "a"],
    ["7f 61 61 61 62 ff", "ab"],
    ["5f 41 61 41 62 ff", "ab"],
    ["9f 01 02 ff", [1, 2]],
    ["bf 61 61 01 ff", { a: 1 }],
    ["19 0001", 1],
    ["fa 3fc00000", 1.5],
    ["f9 3c00", 1],
    ["d5 43 fbff01", "-_8B"],
    ["d7 42 0aff", "0aff"],
    ["d6 82 41 01 41 02", ["AQ==", "Ag=="]],
    ["c0 74 323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"],
    ["c1 1a 514b67b0", "2013-03-21T20:04:00Z"],
    ["c1 fb 41d452d9ec200000", "2013-03-21T20:04:00.500000Z"],
    ["d9 03e8 01", 1],
    ["d9d9f7 d9d9f7 f6", null],
    ["d6 a1 4161 4101", { a: "AQ==" }],
  ];
  for (const [bytes, wanted] of cases) t.strictSame(decodeCbor(fromHex(bytes)), wanted, bytes);
});

t.test("decodeCbor() rejects malformed input and values that JSON cannot represent", async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["", /unexpected end/],
    ["19 01", /unexpected end/],
    ["42 01", /unexpected end/],
    ["9b ffffffffffffffff", /unexpected end/],
    ["5b 7fffffffffffffff", /unexpected end/],
    ["9f 01", /unexpected end/],
    ["01 02", /1 bytes after the value/],
    ["a2 4161 01 6161 02", /duplicate member "a"/],
    ["a1 01 02", /name of a member is not a string/],
    ["61 ff", /not valid UTF-8/],
    ["41 ff", /not valid UTF-8/],
    ["7f 61 c3 61 bc ff", /not valid UTF-8/],
    ["7f 41 61 ff", /another type/],
    ["5f 5f ff ff", /not defined here|unexpected end/],
    ["1b 8000000000000000", /64 bits/],
    ["3b 8000000000000000", /64 bits/],
    ["c2 41 01", /bignums/],
    ["f7", /is not supported/],
    ["f8 ff", /is not supported/],
    ["ff", /is not supported/],
    ["1c", /additional information 28/],
    ["f9 7c00", /Infinity/],
    ["fb 7ff8000000000000", /NaN/],
    ["c0 61 78", /not a time/],
    ["c1 1b 0000ffffffffffff", /not a time/],
  ];
  for (const [bytes, message] of cases)
    t.throws(() => decodeCbor(fromHex(bytes)), { name: "CborError", message }, bytes);
  const nested = (levels: number) => Buffer.concat([Buffer.alloc(levels, 0x81), Buffer.from([0xf6])]);
  t.ok(decodeCbor(nested(cborDepthMax)));
  t.throws(() => decodeCbor(nested(cborDepthMax + 1)), /nested deeper/);
  t.throws(() => decodeCbor(nested(1_000_000)), /nested deeper/);
});

t.test("decodeCbor() cannot reach a prototype", async (t) => {
  const value = decodeCbor(encodeCborValue(JSON.parse('{"__proto__":{"admin":true}}'))) as object;
  t.equal(Object.getPrototypeOf(value), Object.prototype);
  t.same(Object.keys(value), ["__proto__"]);
});

const json = fc.jsonValue({ maxDepth: 5, stringUnit: "grapheme" });

t.test("decodeCbor() returns the value that encodeCborValue() encoded", async () => {
  fc.assert(
    fc.property(json, (value) => {
      return deepEqual(decodeCbor(encodeCborValue(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
});

t.test("encodeCborValue() encodes equal values to equal bytes in any order of members", async () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, member]) => [name, reversed(member)]),
    );
  };
  fc.assert(fc.property(json, (value) => encodeCborValue(value).equals(encodeCborValue(reversed(value)))));
});

t.test("decodeCbor() returns a value or throws a CborError for any bytes", async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      try {
        const value = decodeCbor(bytes);
        return deepEqual(decodeCbor(encodeCborValue(value)), value);
      } catch (error) {
        return error instanceof CborError;
      }
    }),
    { numRuns: 2000 },
  );
});

t.test("encodeCborValue() preserves every number", async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.float({ noNaN: true, noDefaultInfinity: true })),
      (value) => {
        const back = decodeCbor(encodeCborValue(value));
        return back === value;
      },
    ),
    { numRuns: 1000 },
  );
});

/** The items, whose bytes arrive in chunks of `size`. */
async function splitSequence(bytes: Buffer, size: number): Promise<readonly string[]> {
  const chunks = async function* () {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
  const items: string[] = [];
  for await (const item of readCborSequence(chunks())) items.push(hex(item));
  return items;
}

t.test("readCborSequence() splits any items, however the bytes are cut", async () => {
  const indefinite = [
    "9f0102ff",
    "bf6161f5ff",
    "5f41614162ff",
    "d9d9f7a0",
    "80",
    "c11a514b67b0",
    "f97e00",
    "1bffffffffffffffff",
  ];
  const values = fc.array(fc.oneof(fc.jsonValue().map(encodeCborValue), fc.constantFrom(...indefinite).map(fromHex)));
  const property = fc.asyncProperty(values, fc.integer({ min: 1, max: 40 }), async (items, size) => {
    return deepEqual(await splitSequence(Buffer.concat(items), size), items.map(hex));
  });
  await fc.assert(property, { numRuns: 200 });
});

t.test("readCborSequence() drops an incomplete last item and throws for bytes that no item begins with", async (t) => {
  const read = (text: string) => splitSequence(fromHex(text), 1);
  t.same(await read("01 8201"), ["01"]);
  for (const text of ["ff", "1c", "81ff", "df"]) await t.rejects(read(text), { name: "CborError" }, text);
});
