import t from "tap";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile, describeFailure } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { dynType, stringType } from "../values/types.ts";

const environment = createEnvironment({ variables: { text: stringType, any: dynType }, nameFormats });

/** The failure without source lines; undefined if the expression compiles. */
function failureOf(source: string): string | undefined {
  const compiled = compile(source, environment);
  if (compiled.program !== undefined) return undefined;
  return describeFailure(compiled, source)
    .split("\n")
    .filter((line) => !line.startsWith(" |"))
    .join("\n");
}

function failsAt(column: number, message: string): string {
  return `compilation failed: ERROR: <input>:1:${column}: ${message}`;
}

const formatting = (detail: string) => `error during formatting: ${detail}`;
const parsing = (detail: string) => `could not parse formatting clause: ${detail}`;
const texts = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";

t.test("compile() rejects constant formats whose arguments do not fit", async (t) => {
  const cases: readonly (readonly [string, number, string])[] = [
    ["'%'.format([])", 11, "unexpected end of string"],
    ["'%s'.format([])", 12, "index 0 out of range"],
    ["'%s'.format(['a', 'b'])", 12, "too many arguments supplied to string.format (expected 1, got 2)"],
    ["'%s %d'.format([1, 'a'])", 20, formatting("decimal clause can only be used on integers, was given string")],
    ["'%e'.format([1])", 14, formatting("scientific clause can only be used on doubles, was given int")],
    ["'%f'.format([1u])", 14, formatting("fixed-point clause can only be used on doubles, was given uint")],
    [
      "'%x'.format([1.5])",
      14,
      formatting("only integers, byte buffers, and strings can be formatted as hex, was given double"),
    ],
    ["'%b'.format(['x'])", 14, formatting("only integers and bools can be formatted as binary, was given string")],
    ["'%o'.format(['x'])", 14, formatting("octal clause can only be used on integers, was given string")],
    [
      "'%s'.format([[optional.of(1)]])",
      26,
      formatting(`string clause can only be used on ${texts}, was given optional_type`),
    ],
    ["'%z'.format([1])", 12, parsing('unrecognized formatting clause "z"')],
    ["'%.'.format([1])", 12, parsing("error while parsing precision: could not find end of precision specifier")],
    [
      "'%.d'.format([1])",
      13,
      parsing(
        "error while parsing precision: error while converting precision to integer: " +
          'strconv.Atoi: parsing "": invalid syntax',
      ),
    ],
  ];
  for (const [source, column, message] of cases) t.equal(failureOf(source), failsAt(column, message), source);
  for (const source of ["text.format([])", "'%d'.format([any])", "'%d'.format(any)", "'%% %.3f'.format(['NaN'])"]) {
    t.equal(failureOf(source), undefined, source);
  }
});

t.test("compile() rejects items of several types, but not in arguments of format()", async (t) => {
  const mixed = (column: number, wanted: string, found: string) =>
    failsAt(column, `expected type '${wanted}' but found '${found}'`);
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["[1, 'a', 2.5]", mixed(5, "int", "string")],
    ["[1, any]", mixed(5, "int", "dyn")],
    ["{'a': 1, 1: 'x'}", `${mixed(10, "string", "int")}\nERROR: <input>:1:13: expected type 'int' but found 'string'`],
    ["[[], [1]]", undefined],
    ["'%s %s'.format([{'a': 1, 'b': [1, 'x']}, any ? [1, 'b'] : []])", undefined],
    ["'%s'.format(['a'.replace('a', {'a': 1, 'b': 'c'}.size() == 2 ? 'x' : 'y')])", undefined],
    ["'%s'.format(['a']).size() == [1, 'a'].size()", mixed(34, "int", "string")],
  ];
  for (const [source, message] of cases) t.equal(failureOf(source), message, source);
});

t.test("compile() checks the first literal argument of matches(), timestamp() and duration()", async (t) => {
  t.equal(failureOf("text.matches('(')"), failsAt(14, "invalid matches argument"));
  t.equal(failureOf("matches('(', 'a')"), failsAt(9, "invalid matches argument"));
  t.equal(failureOf("timestamp(253402300800) == any"), failsAt(11, "invalid timestamp argument"));
  t.equal(failureOf("duration('1 h') == any"), failsAt(10, "invalid duration argument"));
  t.equal(failureOf("duration(5) == any"), failsAt(10, "invalid duration argument"), "integers are not converted");
});

t.test("compile() orders errors by position", async (t) => {
  const undeclared = (name: string) => `undeclared reference to '${name}' (in container '')`;
  const expected = `${failsAt(2, undeclared("f"))}\nERROR: <input>:1:4: ${undeclared("g")}`;
  t.equal(failureOf("f(g(1))"), expected);
});

t.test("constants that cannot be converted, and invalid constant patterns, leave no program", async (t) => {
  const conversion = (from: string, to: string) => `type conversion error from '${from}' to '${to}'`;
  const cases: readonly (readonly [string, string])[] = [
    ["int('x') == 1", conversion("string", "int")],
    ["true || int('x') == 1", conversion("string", "int")],
    ["[uint(-1)].size() == 1", "unsigned integer overflow"],
    ["int(1e300) == 1", "integer overflow"],
    ["string(int(string('x'))) == ''", conversion("string", "int")],
    ["dyn(bool('maybe'))", conversion("string", "bool")],
    ["string(b'\\xff') == ''", "invalid UTF-8 in bytes, cannot convert to string"],
    ["text.find('(') == ''", "error parsing regexp: missing closing ): `(`"],
    ["text.findAll(string('(')) == []", "error parsing regexp: missing closing ): `(`"],
    ["any[null] == 1", "invalid qualifier type: types.Null"],
    ["matches('a', '(')", "error parsing regexp: missing closing ): `(`"],
  ];
  for (const [source, message] of cases) {
    t.equal(failureOf(source), `program instantiation failed: ${message}`, source);
  }
  for (const source of ["int(text) == 1", "text.find('(' + ')') == ''"]) t.equal(failureOf(source), undefined, source);
});
