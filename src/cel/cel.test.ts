import t from "tap";
import { nameFormats } from "../testing/cel/name-formats.ts";
import { toDynamicCelValue } from "./adapter/json-value.ts";
import { type CompileResult, compile, type Program } from "./cel.ts";
import { createEnvironment, type Environment } from "./environment.ts";
import { renderErrors } from "./parse/source.ts";
import { boolType, dynType, formatType, intType, listType, mapType, objectType, stringType } from "./values/types.ts";
import { fail } from "./values/value.ts";

const self = objectType("Self", { a: intType, s: stringType, list: listType(intType) });
const environment = createEnvironment({
  variables: { self, x: intType, m: mapType(stringType, intType), d: dynType },
  nameFormats,
});

function errorsOf(source: string, custom: Environment = environment): string {
  const { errors } = compile(source, custom);
  return errors === undefined ? "none" : renderErrors(errors, source);
}

function programOf(source: string): Program {
  const { program, errors }: CompileResult = compile(source, environment);
  return program ?? fail(errors?.[0]?.message ?? "");
}

t.test("compile() reports the position of an error", (t) => {
  const operands =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
  const cases: readonly (readonly [source: string, index: number, message: string])[] = [
    ["foo", 1, "undeclared reference to 'foo' (in container '')"],
    ["self.zz == 1", 5, "undefined field 'zz'"],
    ["has(self.zz)", 4, "undefined field 'zz'"],
    ["self.a == 'x'", 8, "found no matching overload for '_==_' applied to '(int, string)'"],
    ["size()", 5, "found no matching overload for 'size' applied to '()'"],
    ["self.s.startsWith(1)", 18, "found no matching overload for 'startsWith' applied to 'string.(int)'"],
    ["self.s.matches('(')", 16, "invalid matches argument"],
    ["timestamp('yesterday') == d", 11, "invalid timestamp argument"],
    ["duration('soon') == d", 10, "invalid duration argument"],
    [
      "x.all(i, true)",
      1,
      "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
    ["self.list.all(i, i)", 18, "expected type 'bool' but found 'int'"],
    ["[1, 'a'] == d", 5, "expected type 'int' but found 'string'"],
    ["x.y", 2, "type 'int' does not support field selection"],
    ["has(x)", 5, "invalid argument to has() macro"],
    ["self.list.map(1, 2)", 15, "argument is not an identifier"],
    ["self.list.all(i, i, true)", 18, "duplicate variable name: i"],
    ["[].map(__result__, 1)", 8, "iteration variable overwrites accumulator variable"],
    ["namespace", 1, "reserved identifier: namespace"],
    ["9223372036854775808", 1, "invalid int literal"],
    ["1e999", 1, "invalid double literal"],
    ["self.a ==", 10, `Syntax error: mismatched input '<EOF>' expecting ${operands}`],
    ["x y", 3, "Syntax error: extraneous input 'y' expecting <EOF>"],
    ["x y z", 3, "Syntax error: mismatched input 'y' expecting <EOF>"],
    ["*x", 1, `Syntax error: extraneous input '*' expecting ${operands}`],
    ["(x", 3, "Syntax error: mismatched input '<EOF>' expecting ')'"],
    ["x $", 3, "Syntax error: token recognition error at: '$'"],
    ["x.true", 3, "Syntax error: no viable alternative at input '.true'"],
  ];
  for (const [source, index, message] of cases) {
    const expected = `ERROR: <input>:1:${index}: ${message}\n | ${source}\n | ${".".repeat(index - 1)}^`;
    t.equal(errorsOf(source), expected, source);
  }
  t.end();
});

t.test("compile() counts lines and characters", (t) => {
  const source = "true &&\n\t'\u{1f600}' == foo";
  t.equal(
    errorsOf(source),
    "ERROR: <input>:2:9: undeclared reference to 'foo' (in container '')\n |  '\u{1f600}' == foo\n | ..\uff0e.....^",
  );
  t.end();
});

t.test("compile() reports all type errors, up to 100", (t) => {
  t.equal(compile("foo + bar + x.y", environment).errors?.length, 3);
  t.equal(compile(Array(200).fill("foo").join(" || "), environment).errors?.length, 100);
  t.end();
});

t.test("compile() continues after an unrecognized token", (t) => {
  const messages = (source: string): readonly string[] | undefined =>
    compile(source, environment).errors?.map(({ message, column }) => `${column}: ${message.slice(0, 50)}`);
  t.same(messages("1 + $"), [
    "4: Syntax error: token recognition error at: '$'",
    "5: Syntax error: mismatched input '<EOF>' expecting {",
  ]);
  t.same(messages("x | y"), [
    "2: Syntax error: token recognition error at: '| '",
    "4: Syntax error: extraneous input 'y' expecting <EOF>",
  ]);
  t.same(messages("x = 1"), [
    "2: Syntax error: token recognition error at: '= '",
    "4: Syntax error: extraneous input '1' expecting <EOF>",
  ]);
  t.end();
});

t.test("compile() continues after a field that is no name", (t) => {
  const messages = (source: string): readonly string[] | undefined =>
    compile(source, environment).errors?.map(({ message, column }) => `${column}: ${message.slice(0, 55)}`);
  t.same(messages("d.in == 1"), [
    "2: Syntax error: no viable alternative at input '.in'",
    "5: Syntax error: extraneous input '==' expecting {'[', '{'",
  ]);
  t.same(messages("d.true.x == 1"), ["2: Syntax error: no viable alternative at input '.true'"]);
  t.same(messages("[d.null, 1].size() == 2"), ["3: Syntax error: no viable alternative at input '.null'"]);
  t.end();
});

t.test("compile() requires the given result type", (t) => {
  t.equal(compile("x", environment, { result: boolType }).errors?.[0]?.message, "must evaluate to bool");
  t.equal(compile("d", environment, { result: boolType }).errors?.[0]?.message, "must evaluate to bool");
  t.equal(compile("x > 1", environment, { result: boolType }).errors, undefined);
  t.end();
});

t.test("compile() infers types", (t) => {
  const types: Readonly<Record<string, string>> = {
    "[]": "list(dyn)",
    "[1, 2].map(i, string(i))": "list(string)",
    "{'a': [1u]}": "map(string, list(uint))",
    "x > 1 ? self.list : []": "list(int)",
    "m.?a": "optional_type(int)",
    "m[?'a'].orValue(1)": "int",
    "[[]] + [[1]]": "list(list(int))",
    "type(x)": "type(int)",
    "d.a.b[0]": "dyn",
    "timestamp('2020-01-01T00:00:00Z') - timestamp('2020-01-01T00:00:00Z')": "duration",
  };
  for (const [source, type] of Object.entries(types)) t.equal(formatType(programOf(source).resultType), type, source);
  t.end();
});

t.test("compile() bounds the length and the depth of expressions", (t) => {
  t.match(errorsOf(`'${"a".repeat(100_001)}'`), /expression code point size exceeds limit: size: 100003, limit 100000/);
  t.match(errorsOf("(".repeat(50_000)), /expression recursion limit exceeded: 250/);
  t.match(errorsOf(`${"[".repeat(300)}${"]".repeat(300)}`), /expression recursion limit exceeded: 250/);
  t.match(errorsOf(`x${".a".repeat(40_000)}`), /expression recursion limit exceeded: 250/);
  t.match(errorsOf(`1${"+1".repeat(40_000)}`), /expression recursion limit exceeded: 250/);
  t.match(errorsOf(`1${"+1".repeat(250)}`), /expression recursion limit exceeded: 250/);
  t.equal(errorsOf(`1${"+1".repeat(249)}`), "none");
  t.match(errorsOf(`${"!".repeat(90_001)}true`), /none/);
  t.match(errorsOf(`[{1: 1}]${".map(a, {a: a})".repeat(60)}`), /the type of this is too large/);
  t.equal(errorsOf(Array(5000).fill("true").join(" && ")), "none");
  t.end();
});

t.test("compile() takes linear time with macros that use an argument twice", (t) => {
  const nested = `optional.of(1)${".optMap(v, v + 1)".repeat(40)}.hasValue()`;
  t.ok(programOf(nested).estimate.max > 0);
  t.equal(programOf(nested).evaluate({}).error?.costExceeded, true);
  t.end();
});

t.test("evaluate() ignores a failed operand when the other determines the result", (t) => {
  const cases: Readonly<Record<string, boolean | string>> = {
    "1 / 0 == 1 || true": true,
    "true || 1 / 0 == 1": true,
    "has({'a': dyn(1)}.a.b) || {'a': dyn(null)}.?a.?b.hasValue()": false,
    "{'a': dyn(1)}.a.b == 1": "no such key: b",
    "1 / 0 == 1 && false": false,
    "1 / 0 == 1 || false": "division by zero",
    "[0, 1].exists(i, 1 / i == 1)": true,
    "[0, 1].all(i, 1 / i == 2)": false,
    "[0, 1].all(i, 1 / i == 1)": "division by zero",
    "false ? 1 / 0 == 1 : true": true,
    "[1, 0].exists_one(i, 1 / i == 1)": "division by zero",
  };
  for (const [source, expected] of Object.entries(cases)) {
    const { value, error } = programOf(source).evaluate({});
    t.equal(error?.message ?? value, expected, source);
  }
  t.end();
});

t.test("evaluate() calls the function of a variable once, at the first read", (t) => {
  let calls = 0;
  const x = (): bigint => {
    calls++;
    return 3n;
  };
  t.same(programOf("false && x == 1").evaluate({ x }).value, false);
  t.equal(calls, 0);
  t.same(programOf("x + x").evaluate({ x }).value, 6n);
  t.equal(calls, 1);
  t.equal(programOf("x").evaluate({}).error?.message, "no such attribute(s): x");
  t.end();
});

t.test("evaluate() scopes the variables of loops", (t) => {
  t.equal(programOf("[1, 2].map(x, [10].map(y, x + y)[0]) == [11, 12]").evaluate({}).value, true);
  t.equal(programOf("[1].map(x, x)[0] + x").evaluate({ x: 5n }).value, 6n);
  t.equal(programOf("[1].map(x, .x)[0]").evaluate({ x: 5n }).value, 5n);
  t.equal(programOf("[[1], [2]].all(x, x.all(x, x > 0))").evaluate({}).value, true);
  t.end();
});

t.test("evaluate() fails when it exceeds its budget, even if another operand would determine the result", (t) => {
  const many = "[1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(j, i + j > 0)) || true";
  t.equal(programOf(many).evaluate({}).value, true);
  const { error, cost } = programOf(many).evaluate({}, { budget: 50 });
  t.match(error, { message: "operation cancelled: actual cost limit exceeded", costExceeded: true });
  t.ok(cost > 50 && cost < 60);
  t.end();
});

t.test("evaluate() bounds the size of values that short expressions create", (t) => {
  const doubled = `[[0]]${".map(l, l + l)".repeat(60)}[0].size()`;
  t.match(programOf(doubled).evaluate({}).error?.message, /value too large/);
  const shared = `[[1]]${".map(a, [a, a])".repeat(40)}`;
  t.match(programOf(`${shared} == ${shared}`).evaluate({}).error?.message, /value too large/);
  const d = toDynamicCelValue({ wide: Array.from({ length: 2000 }, (_, i) => ({ name: `n${i}` })) });
  const endless = `[[d.wide, d.wide]]${".map(a, a + a)".repeat(18)}[0]`;
  for (const slow of [`${endless} == ${endless}`, `${endless}.indexOf(1) == 0`, `'%s'.format([${endless}]) == ''`]) {
    const { error } = programOf(slow).evaluate({ d });
    t.ok(error !== undefined, slow.slice(-40));
  }
  const large = `[[1]]${".map(a, [a, a])".repeat(18)}`;
  const often = `[${large}].all(l, [1, 2, 3, 4, 5, 6, 7, 8].all(i, [1, 2, 3, 4, 5, 6, 7, 8].all(j, l == ${large})))`;
  t.equal(programOf(often).evaluate({}).error?.costExceeded, true);
  const text = `['ab']${".map(s, s + s)".repeat(60)}[0].size()`;
  t.equal(programOf(text).evaluate({}).error?.costExceeded, true);
  const replaced = "['a'.replace('', 'xxxxxxxxxx')].map(s, s.replace('', s)).map(s, s.replace('', s))";
  const more = `${replaced}${".map(s, s.replace('', s))".repeat(5)}[0].size()`;
  t.ok(programOf(more).evaluate({}).error !== undefined);
  const format = `['a']${".map(s, '%s%s%s%s%s%s%s%s'.format([s, s, s, s, s, s, s, s]))".repeat(20)}[0].size()`;
  t.ok(programOf(format).evaluate({}).error !== undefined);
  t.end();
});

t.test("uses() is true for the variables of an expression", (t) => {
  const program = programOf("self.a > 1 && [1].all(x, x > 0)");
  t.equal(program.uses("self"), true);
  t.equal(program.uses("x"), false);
  t.end();
});
