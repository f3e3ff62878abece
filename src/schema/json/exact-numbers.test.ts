import t from "tap";
import { decode } from "../decode/decode.ts";
import { double, int32, int64, object, optional, quantity, rawExtension, string } from "../define.ts";
import { decodeProtobuf } from "../protobuf/decode.ts";
import { encodeProtobuf } from "../protobuf/encode.ts";
import { NumberLiteral } from "../value/number-literal.ts";
import { encodeYaml } from "../yaml/write-yaml.ts";
import { parseYaml } from "../yaml/yaml.ts";
import { canonicalJson } from "./canonical-json.ts";
import { encodeJson } from "./encode.ts";
import { parseExact, stringifyExact } from "./exact-numbers.ts";
import { parseJson } from "./parse.ts";

/** Each integer of 64 bits; other numbers as Go prints the double. */
const SPELLINGS: readonly (readonly [string, string])[] = [
  ["0", "0"],
  ["-7", "-7"],
  ["9007199254740991", "9007199254740991"],
  ["9007199254740993", "9007199254740993"],
  ["-9007199254740993", "-9007199254740993"],
  ["9223372036854775807", "9223372036854775807"],
  ["-9223372036854775808", "-9223372036854775808"],
  ["9223372036854775808", "9223372036854776000"],
  ["1.0", "1"],
  ["1e2", "100"],
  ["0.5", "0.5"],
  ["1e21", "1e+21"],
];

t.test("values of unknown type keep each 64-bit integer, in JSON and YAML", async (t) => {
  for (const [written, kept] of SPELLINGS) {
    const text = `{"a":[${written},"${written}"],"b":1}`;
    const { value } = parseJson(Buffer.from(text));
    t.equal(canonicalJson(value), `{"a":[${kept},"${written}"],"b":1}`, written);
    t.equal(stringifyExact(parseExact(text)), `{"a":[${kept},"${written}"],"b":1}`, written);
    const repeated = parseJson(Buffer.from(`{"b":0,"b":1,"a":${written}}`));
    t.match(stringifyExact(repeated.scan?.value), `"a":${kept}}`, `${written} beside a duplicate`);
    const [document] = parseYaml(encodeYaml(value));
    t.equal(canonicalJson(document?.value), canonicalJson(value), `${written} as YAML`);
  }
});

t.test("a text with numbers out of place, or that only look like numbers, is no JSON", async (t) => {
  const long = "12345678901234567890";
  const texts = [
    `{${long}:1}`,
    `{1.0 : 1}`,
    `[0${long}]`,
    `[+${long}]`,
    `[-]`,
    `[--${long}]`,
    `[${long}.]`,
    `[${long}.e]`,
    `[1.0.0]`,
    `[1.0 1.0]`,
    `[1.0"a"]`,
    `["a"1.0]`,
    `[tru1.0]`,
    `{"a":1.0`,
    `"${long}`,
    `${long}-`,
  ];
  for (const text of texts) {
    for (const literals of [false, true]) {
      t.throws(() => parseJson(Buffer.from(text), undefined, { literals }), { name: "SyntaxError" }, text);
    }
    t.throws(() => parseExact(`[${long},${text}]`), { name: "SyntaxError" }, text);
  }
});

t.test("numbers are exact beside strings and members of every spelling", async (t) => {
  const long = 9007199254740993n;
  const text = `{"__proto__":${long},"7":[${long},"${long}","\\"${long}","\\\\"],"\\u0031":{"${long}":-${long}}}`;
  const { value } = parseJson(Buffer.from(text));
  t.equal(
    stringifyExact(value),
    `{"1":{"${long}":-${long}},"7":[${long},"${long}","\\"${long}","\\\\"],"__proto__":${long}}`,
  );
  t.equal(Object.getPrototypeOf(value), Object.prototype);
});

t.test("integer fields accept integers in range only, as Go does", async (t) => {
  const schema = object("test/v1.Numbers", {
    small: optional(1, int32),
    large: optional(2, int64),
    text: optional(3, string),
    amount: optional(4, quantity),
    share: optional(5, double),
    any: optional(6, rawExtension),
  });
  const outcome = (text: string): string => {
    const { value, literals } = parseJson(Buffer.from(text), undefined, { literals: true });
    const decoded = decode(schema, value, { literals });
    const into = "into Go struct field Numbers";
    return (
      decoded.errors[0]?.message.replace("json: cannot unmarshal ", "").replace(into, "F") ?? showDecoded(decoded.value)
    );
  };
  const showDecoded = (value: object): string => canonicalJson(value);
  const rows: readonly (readonly [string, string])[] = [
    ['{"small":1.0}', "number 1.0 F.small of type int32"],
    ['{"small":1e2}', "number 1e2 F.small of type int32"],
    ['{"small":2147483648}', "number 2147483648 F.small of type int32"],
    ['{"small":9007199254740993}', "number 9007199254740993 F.small of type int32"],
    ['{"large":9223372036854775808}', "number 9223372036854775808 F.large of type int64"],
    ['{"large":-9223372036854775809}', "number -9223372036854775809 F.large of type int64"],
    ['{"large":1E0}', "number 1E0 F.large of type int64"],
    ['{"text":1.0}', "number F.text of type string"],
    ['{"text":9007199254740993}', "number F.text of type string"],
    ['{"amount":1e3}', '{"amount":"1e3"}'],
    ['{"amount":1.50}', '{"amount":"1500m"}'],
    ['{"share":1e2}', '{"share":100}'],
    ['{"any":{"n":[1.0,9007199254740993]}}', '{"any":{"n":[1,9007199254740993]}}'],
  ];
  for (const [text, expected] of rows) t.equal(outcome(text), expected, text);
  for (const largest of ["9223372036854775807", "-9223372036854775808"]) {
    const { value } = decode(schema, parseJson(Buffer.from(`{"large":${largest}}`)).value);
    const again = decodeProtobuf(schema, encodeProtobuf(schema, value));
    t.equal(encodeJson(schema, again).toString(), encodeJson(schema, value).toString(), `${largest} stays in range`);
  }
});

t.test("stringifyExact() needs no change of BigInt's prototype", async (t) => {
  t.equal("toJSON" in BigInt.prototype, false);
  const value = { a: [2n ** 60n, "x", new NumberLiteral("1.0")], b: undefined };
  t.equal(stringifyExact(value), '{"a":[1152921504606846976,"x",1.0]}');
  t.equal(stringifyExact({ a: 2n ** 60n }, 1), '{\n "a": 1152921504606846976\n}');
  const circular: { self?: unknown } = {};
  circular.self = circular;
  t.throws(() => stringifyExact(circular), TypeError);
});
