import fc from "fast-check";
import t from "tap";
import { decode } from "../decode/decode.ts";
import {
  boolean,
  int32,
  intOrString,
  list,
  map,
  object,
  optional,
  pointer,
  quantity,
  required,
  string,
  time,
} from "../define.ts";
import type { ObjectSchema } from "../schema.ts";
import { encodeJson, stringify } from "./encode.ts";
import { stringifyExact } from "./exact-numbers.ts";
import { parseJson } from "./parse.ts";

const bytes = (text: string) => Buffer.from(text);

t.test("parseJson() parses JSON and reports duplicate members", async (t) => {
  t.same(parseJson(bytes('{"a":{"b":1,"c:":"x:y\\"{"},"l":[1,[]]}')), {
    value: { a: { b: 1, "c:": 'x:y"{' }, l: [1, []] },
    duplicates: [],
  });
  const twice = parseJson(
    bytes('{"spec":{"containers":[{"name":"a","name":"b","name":"c"}]},"spec\\u0000":1,"x":1,"x":2}'),
  );
  t.same(twice.duplicates, ["spec.containers[0].name", "spec.containers[0].name", "x"]);
  t.same(parseJson(bytes('{"a":1,"\\u0061":2}')).duplicates, ["a"], "an escaped name equals the unescaped one");
});

t.test("parseJson() replaces unpaired surrogates", async (t) => {
  t.same(parseJson(bytes('{"a\\udc00":["\\uD800","\\ud83d\\ude00"],"b":1}')), {
    value: { "a\ufffd": ["\ufffd", "\u{1f600}"], b: 1 },
    duplicates: [],
  });
});

t.test("parseJson() reports the position of the error", async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ["", "unexpected end of JSON input (line 1, column 1)"],
    ['{"a":', "unexpected end of JSON input (line 1, column 6)"],
    ['{"a":1', "unexpected end of JSON input (line 1, column 7)"],
    ['{\n "a": x}', "invalid character 'x' looking for beginning of value (line 2, column 7)"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string (line 1, column 8)"],
    ["[1 2]", "invalid character '2' after array element (line 1, column 4)"],
    ['{"a" 1}', "invalid character '1' after object key (line 1, column 6)"],
    ['{"a":1 "b":2}', "invalid character '\"' after object key:value pair (line 1, column 8)"],
    ['"a\\q"', "invalid character 'q' in string escape code (line 1, column 4)"],
    ['"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape (line 1, column 6)"],
    ['"a\nb"', "invalid character '\\n' in string literal (line 1, column 3)"],
    ["tru", "unexpected end of JSON input (line 1, column 4)"],
    ["nulL", "invalid character 'L' in literal null (expecting 'l') (line 1, column 4)"],
    ["-x", "invalid character 'x' in numeric literal (line 1, column 2)"],
    ["01", "invalid character '1' after top-level value (line 1, column 2)"],
    ["{} {}", "invalid character '{' after top-level value (line 1, column 4)"],
  ];
  for (const [text, message] of cases) t.throws(() => parseJson(bytes(text)), { name: "SyntaxError", message }, text);
});

t.test("parseJson() bounds nesting and accepts invalid UTF-8", async (t) => {
  t.throws(() => parseJson(bytes("[".repeat(100_000))), { name: "SyntaxError", message: /nested deeper than/ });
  t.throws(() => parseJson(bytes('{"a":'.repeat(100_000))), { name: "SyntaxError", message: /nested deeper than/ });
  t.same(parseJson(Buffer.from([0x22, 0xff, 0xfe, 0x22])).value, "\ufffd\ufffd");
  t.throws(() => parseJson(Buffer.from([0xff, 0xfe])), SyntaxError);
  t.throws(() => parseJson(bytes('{"a":[-1e999]}')), { name: "SyntaxError", message: /type float64/ });
  const hostile = parseJson(bytes('{"__proto__":{"a":1}}')).value as object;
  t.equal(Object.getPrototypeOf(hostile), Object.prototype);
});

t.test("parseJson() agrees with JSON.parse on any text", async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
      let wanted: unknown;
      try {
        wanted = JSON.parse(text);
      } catch {
        return throws(() => parseJson(bytes(text)));
      }
      return stringifyExact(parseJson(bytes(text)).value) === JSON.stringify(wanted);
    }),
  );
  t.pass();
});

function throws(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    return error instanceof SyntaxError;
  }
}

const inner = object("t/v1.Inner", { must: required(1, int32), may: optional(2, string) });
const outer = object("t/v1.Outer", {
  kind: optional(0, string),
  apiVersion: optional(0, string),
  inner: optional(1, inner),
  maybe: pointer(2, inner),
  items: required(3, list(string)),
  kept: optional(4, list(string), { emitEmpty: true }),
  gone: optional(5, list(string)),
  labels: optional(6, map(string)),
  created: optional(7, time),
  deleted: pointer(8, time),
  on: optional(9, boolean),
  always: required(10, string),
  amount: optional(11, quantity),
  target: optional(12, intOrString),
  zero: pointer(13, int32),
});

t.test("encodeJson() writes empty members as Go writes them for a stored object", async (t) => {
  t.equal(
    stringify(outer, {}),
    '{"inner":{"must":0},"items":null,"kept":null,"created":null,"always":"","amount":"0","target":0}',
  );
  t.equal(
    stringify(outer, { maybe: {}, items: [], kept: [], gone: [], labels: {}, on: false, zero: 0, deleted: undefined }),
    '{"inner":{"must":0},"maybe":{"must":0},"items":null,"kept":null,"created":null,"always":"","amount":"0","target":0,"zero":0}',
  );
});

t.test("encodeJson() writes members in the schema's order, map keys sorted, and nothing unknown", async (t) => {
  const value = {
    extra: 1,
    labels: { b: "2", a: "1\n" },
    always: "é",
    items: ["x"],
    inner: { may: "y", must: 1 },
    apiVersion: "v1",
    kind: "Outer",
  };
  const rest =
    '"inner":{"must":1,"may":"y"},"items":["x"],"kept":null,"labels":{"a":"1\\n","b":"2"},"created":null,"always":"é","amount":"0","target":0}';
  t.equal(encodeJson(outer, value).toString(), `{"kind":"Outer","apiVersion":"v1",${rest}`);
  t.equal(encodeJson(outer, value, { omitTypeMeta: true }).toString(), `{${rest}`);
});

t.test("decode() inverts encodeJson()", async (t) => {
  const tree: ObjectSchema = object("t/v1.Tree", {
    name: optional(1, string),
    children: optional(2, (): ReturnType<typeof list<ObjectSchema>> => list(tree)),
    labels: optional(3, map(string)),
    size: pointer(4, int32),
  });
  const { trees } = fc.letrec((tie) => ({
    trees: fc.record(
      {
        name: fc.string({ unit: "binary" }),
        children: fc.array(tie("trees"), { maxLength: 3 }),
        labels: fc.dictionary(fc.string(), fc.string()),
        size: fc.integer({ min: -5, max: 5 }),
      },
      { requiredKeys: [] },
    ),
  }));
  fc.assert(
    fc.property(trees, (value) => {
      const canonical = decode(tree, value).value;
      const text = encodeJson(tree, value);
      return stringify(tree, decode(tree, parseJson(text).value).value) === stringify(tree, canonical);
    }),
  );
  t.pass();
});
