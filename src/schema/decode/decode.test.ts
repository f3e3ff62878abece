import t from "tap";
import {
  base64,
  bigInt64,
  boolean,
  duration,
  fieldsV1,
  inline,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  named,
  object,
  optional,
  pointer,
  quantity,
  required,
  requiredPointer,
  string,
  time,
} from "../define.ts";
import { decodeProtobuf } from "../protobuf/decode.ts";
import { encodeProtobuf } from "../protobuf/encode.ts";
import type { ObjectSchema } from "../schema.ts";
import { reportedErrorsMax } from "./context.ts";
import { decode } from "./decode.ts";

const port = object("t/v1.Port", { name: optional(1, string), number: required(2, int32) });
const reference = object("t/v1.Reference", { name: optional(1, string) });
const spec = object("t/v1.Spec", {
  ports: optional(1, list(port)),
  labels: optional(2, map(string)),
  replicas: pointer(3, int32),
  paused: optional(4, boolean),
  source: inline(5, reference),
  target: optional(6, intOrString),
  amounts: optional(7, map(quantity)),
  since: optional(8, time),
  seen: optional(9, microTime),
  wait: optional(10, duration),
  bytes: optional(11, base64),
  raw: pointer(12, fieldsV1),
  big: optional(13, bigInt64),
  count: optional(14, int64),
  words: optional(15, list(string)),
  protocol: optional(16, named("v1.Protocol", string)),
});
const thing = object("t/v1.Thing", { kind: optional(0, string), spec: optional(1, spec) });

t.test("decode() keeps the members of the schema in canonical format", async (t) => {
  const { value, unknown, errors } = decode(thing, {
    kind: "Thing",
    spec: {
      ports: [{ name: "a", number: 1 }],
      name: "inlined",
      replicas: 0,
      target: "80%",
      amounts: { cpu: "1000m", memory: 1024 },
      since: "2026-01-02T03:04:05+01:00",
      seen: "2026-01-02T04:04:05.000000+01:00",
      wait: "90s",
      bytes: "aGk=",
      raw: { "f:a": {} },
      big: 7,
      words: ["a", null],
    },
  });
  t.same([unknown, errors], [[], []]);
  t.strictSame(value, {
    kind: "Thing",
    spec: {
      ports: [{ name: "a", number: 1 }],
      name: "inlined",
      replicas: 0,
      target: "80%",
      amounts: { cpu: "1", memory: "1024" },
      since: "2026-01-02T02:04:05Z",
      seen: "2026-01-02T03:04:05.000000Z",
      wait: "1m30s",
      bytes: "aGk=",
      raw: { "f:a": {} },
      big: 7n,
      words: ["a", ""],
    },
  });
});

t.test("decode() drops nulls and empty optional members, but keeps zero values of pointers", async (t) => {
  const { value } = decode(spec, {
    ports: [],
    labels: null,
    replicas: 0,
    paused: false,
    name: "",
    since: null,
    count: 0,
    bytes: "",
  });
  t.strictSame(value, { replicas: 0 });
});

t.test("decode() keeps a null list in a map or list, and replaces other nulls there by zero", async (t) => {
  const holder = object("t/v1.Holder", {
    extra: optional(1, map(list(string))),
    rows: optional(2, list(list(string))),
    texts: optional(3, map(string)),
    parts: optional(4, map(reference)),
  });
  const value = { extra: { a: null, b: [], c: [null] }, rows: [null], texts: { a: null }, parts: { a: null } };
  const decoded = decode(holder, value).value;
  t.strictSame(decoded, {
    extra: { a: null, b: [], c: [""] },
    rows: [null],
    texts: { a: "" },
    parts: { a: {} },
  });
  const stored = decodeProtobuf(holder, encodeProtobuf(holder, { extra: decoded.extra }));
  t.strictSame(stored, { extra: { a: [], b: [], c: [""] } }, "protobuf has no null");
});

t.test("decode() reports unknown members by path and drops them", async (t) => {
  const value = { bogus: 1, spec: { ports: [{ number: 1 }, { number: 2, nmae: "x" }] } };
  t.same(decode(thing, value).unknown, ["bogus", "spec.ports[1].nmae"]);
  t.same(decode(thing, value, { unknownFields: "drop" }).unknown, []);
  t.same(decode(thing, value).value, { spec: { ports: [{ number: 1 }, { number: 2 }] } });
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`x${n}`, 1]));
  t.equal(decode(thing, many).unknown.length, reportedErrorsMax);
});

t.test("decode() reports wrong types with Go's messages", async (t) => {
  const cases: readonly (readonly [unknown, string, string])[] = [
    [
      { spec: { ports: [{ number: "1" }] } },
      "spec.ports[0].number",
      "json: cannot unmarshal string into Go struct field Port.spec.ports.number of type int32",
    ],
    [
      { spec: { ports: {} } },
      "spec.ports",
      "json: cannot unmarshal object into Go struct field Spec.spec.ports of type []v1.Port",
    ],
    [{ spec: [] }, "spec", "json: cannot unmarshal array into Go struct field Thing.spec of type v1.Spec"],
    [
      { spec: { labels: { a: 1 } } },
      "spec.labels.a",
      "json: cannot unmarshal number into Go struct field Spec.spec.labels of type string",
    ],
    [
      { spec: { paused: "yes" } },
      "spec.paused",
      "json: cannot unmarshal string into Go struct field Spec.spec.paused of type bool",
    ],
    [
      { spec: { replicas: 1.5 } },
      "spec.replicas",
      "json: cannot unmarshal number 1.5 into Go struct field Spec.spec.replicas of type int32",
    ],
    [
      { spec: { replicas: 2147483648 } },
      "spec.replicas",
      "json: cannot unmarshal number 2147483648 into Go struct field Spec.spec.replicas of type int32",
    ],
    [{ spec: { bytes: "a*" } }, "spec.bytes", "illegal base64 data at input byte 1"],
    [{ spec: { wait: "soon" } }, "spec.wait", 'time: invalid duration "soon"'],
    [[], "", "json: cannot unmarshal array into Go value of type v1.Thing"],
    ["x", "", "json: cannot unmarshal string into Go value of type v1.Thing"],
  ];
  for (const [value, path, message] of cases) t.same(decode(thing, value).errors, [{ path, message }]);
  t.match(
    decode(spec, { amounts: { cpu: "lots" } }).errors[0]?.message,
    /quantities must match the regular expression/,
  );
  t.match(decode(spec, { seen: "2026-01-02T03:04:05Z" }).errors[0]?.message, /05\.000000Z07:00/);
  t.match(decode(spec, { since: "yesterday" }).errors[0]?.message, /^parsing time "yesterday" as /);
});

t.test(
  "decode() omits an empty struct that is not a pointer, since Go does not distinguish it from an absent one",
  async (t) => {
    const empty = object("t/v1.Empty", { name: optional(1, string) });
    const holder = object("t/v1.Holder", { value: optional(1, empty), pointed: pointer(2, empty) });
    t.same(decode(holder, { value: { name: "" }, pointed: {} }).value, { pointed: {} });
  },
);

t.test("decode() reports wrong types with the messages of Go's converter on request", async (t) => {
  const values: readonly (readonly [unknown, string])[] = [
    [{ ports: {} }, "cannot restore slice from map"],
    [{ ports: ["x"] }, "cannot restore struct from: string"],
    [[], "cannot restore struct from: slice"],
    [{ labels: "x" }, "cannot restore map from string"],
    [{ labels: { a: 1 } }, "cannot convert int64 to string"],
    [{ labels: { a: 1.5 } }, "unrecognized type: string"],
    [{ labels: { a: {} } }, "unrecognized type: string"],
    [{ protocol: 5 }, "cannot convert int64 to v1.Protocol"],
    [{ protocol: true }, "unrecognized type: string"],
    [{ paused: 1 }, "unrecognized type: bool"],
    [{ replicas: 1.5 }, "cannot convert float64 to int32"],
    [{ replicas: "1" }, "unrecognized type: int32"],
    [{ replicas: 2 ** 31 }, "cannot convert number 2147483648 for int32: out of range"],
    [{ since: 1 }, "json: cannot unmarshal number into Go value of type string"],
    [{ bytes: "!" }, "error decoding from json: illegal base64 data at input byte 0"],
    [{ bytes: 1 }, "cannot restore slice from int64"],
  ];
  for (const [value, message] of values) {
    const { errors } = decode(thing, { spec: value }, { converter: true });
    t.equal(errors[0]?.message, message, JSON.stringify(value));
  }
});

t.test("decode() keeps empty maps where errors show them, and leaves absent bytes absent", async (t) => {
  const part = object("t/v1.Part", {
    labels: optional(1, map(string), { keepEmpty: true }),
    others: optional(2, map(string)),
    data: required(3, base64),
  });
  t.same(decode(part, { labels: {}, others: {} }).value, { labels: {} });
  t.same(decode(part, { labels: null, data: "" }).value, { data: "" });
});

t.test("decode() distinguishes an absent required pointer from zero", async (t) => {
  const part = object("t/v1.Part", { selector: requiredPointer(1, map(string)) });
  t.same(decode(part, {}).value, {});
  t.same(decode(part, { selector: {} }).value, { selector: {} });
});

t.test("decode() neither reads nor sets prototypes", async (t) => {
  const hostile = JSON.parse('{"__proto__":{"kind":"Evil"},"constructor":1,"spec":{"labels":{"__proto__":"x"}}}');
  const { value, unknown } = decode(thing, hostile);
  t.same(unknown, ["__proto__", "constructor"]);
  t.equal(value.kind, undefined);
  t.equal(Object.getPrototypeOf(value), Object.prototype);
  t.same(Object.keys(value.spec?.labels ?? {}), ["__proto__"]);
});

t.test("decode() rejects values nested deeper than the limit", async (t) => {
  const deep: ObjectSchema = object("t/v1.Deep", { next: pointer(1, (): ObjectSchema => deep) });
  let value: object = {};
  for (let level = 0; level < 10_000; level++) value = { next: value };
  t.match(decode(deep, value).errors, [{ message: "exceeded max depth" }]);
});
