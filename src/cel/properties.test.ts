/** Property tests with random expressions. */
import fc from "fast-check";
import t from "tap";
import { nameFormats } from "../testing/cel/name-formats.ts";
import { toDynamicCelValue } from "./adapter/json-value.ts";
import { compile } from "./cel.ts";
import { createEnvironment } from "./environment.ts";
import type { Expr } from "./parse/ast.ts";
import { parse } from "./parse/parser.ts";
import { renderErrors } from "./parse/source.ts";
import { compareStrings } from "./values/compare.ts";
import { dynType, intType } from "./values/types.ts";
import { equal } from "./values/value.ts";

const operators = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "in"];

/** Generates expressions with parentheses around every part, so that the text determines the tree. */
const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const part = tie("expression");
  const name = fc.constantFrom("x", "d", "d.a", "d.b.c", "y");
  const literal = fc.oneof(
    fc.integer({ min: 0, max: 9 }).map(String),
    fc.constantFrom("true", "false", "null", "1.5", "2u", "'a'", "b'\\x01'", "[]", "{}"),
  );
  return {
    expression: fc.oneof(
      { maxDepth: 5, depthSize: "small" },
      name,
      literal,
      fc.tuple(part, fc.constantFrom(...operators), part).map(([a, o, b]) => `(${a} ${o} ${b})`),
      fc.tuple(part, part, part).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      fc.array(part, { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
      fc.array(fc.tuple(part, part), { maxLength: 2 }).map((all) => `{${all.map((e) => e.join(": ")).join(", ")}}`),
      fc.tuple(part, part).map(([a, b]) => `(${a})[${b}]`),
      fc.tuple(fc.constantFrom("size", "string", "int", "type", "dyn"), part).map(([f, a]) => `${f}(${a})`),
      fc
        .tuple(part, fc.constantFrom("all", "exists", "exists_one", "map", "filter"), part)
        .map(([a, macro, b]) => `(${a}).${macro}(y, ${b})`),
      part.map((a) => `!(${a})`),
      part.map((a) => `-(${a})`),
    ),
  };
});

const variables = { x: intType, d: dynType, y: dynType };
const checked = createEnvironment({ variables, nameFormats });
const unchecked = createEnvironment({ variables, nameFormats, mixedLiterals: true, unchecked: true });
const values = { x: 3n, d: toDynamicCelValue({ a: [1, "a"], b: { c: 2.5 } }), y: true };

/** Removes the source offsets from a tree. */
function shape(expr: Expr | undefined): string {
  return JSON.stringify(expr, (key, value: unknown) => {
    if (key === "offset") return undefined;
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Set ? [...value] : value;
  });
}

t.test("parse() ignores redundant parentheses and white space", (t) => {
  fc.assert(
    fc.property(expression, (source) => {
      const plain = shape(parse(source).expr);
      return (
        plain === shape(parse(`((${source}))`).expr) &&
        plain === shape(parse(source.replaceAll(" ", "\n\t // a remark\n")).expr)
      );
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test("evaluate() returns a value or an error within its budget for any valid expression", (t) => {
  fc.assert(
    fc.property(expression, fc.integer({ min: 0, max: 500 }), (source, budget) => {
      for (const names of [checked, unchecked]) {
        const { program, errors } = compile(source, names);
        if (program === undefined) {
          renderErrors(errors, source);
          continue;
        }
        const { cost, error } = program.evaluate(values, { budget });
        if (cost > budget && error?.costExceeded !== true) return false;
        if (!(program.estimate.max >= program.estimate.min)) return false;
      }
      return true;
    }),
    { numRuns: 1000 },
  );
  t.end();
});

t.test("evaluate() is deterministic in result and cost", (t) => {
  fc.assert(
    fc.property(expression, (source) => {
      const { program } = compile(source, unchecked);
      const [first, second] = [program?.evaluate(values), program?.evaluate(values)];
      if (first === undefined || second === undefined) return true;
      if (first.cost !== second.cost || first.error?.message !== second.error?.message) return false;
      return first.error !== undefined || Number.isNaN(first.value) || equal(first.value, second.value!);
    }),
    { numRuns: 500 },
  );
  t.end();
});

t.test("evaluate() treats && and || as commutative", (t) => {
  fc.assert(
    fc.property(expression, expression, fc.constantFrom("&&", "||"), (a, b, operator) => {
      const [left, right] = [`(${a}) ${operator} (${b})`, `(${b}) ${operator} (${a})`].map((source) => {
        return compile(source, unchecked).program?.evaluate(values);
      });
      return left?.value === right?.value && (left?.error === undefined) === (right?.error === undefined);
    }),
    { numRuns: 500 },
  );
  t.end();
});

/** Characters from all planes, including those where UTF-8 and UTF-16 sort differently. */
const letters = fc.string({ unit: fc.constantFrom("a", "b", "\u00e9", "\ud7ff", "\ue000", "\uffff", "\u{1f600}") });

t.test("compareStrings() sorts as UTF-8 bytes", (t) => {
  fc.assert(
    fc.property(letters, letters, (a, b) => {
      return Math.sign(compareStrings(a, b)) === Buffer.compare(Buffer.from(a), Buffer.from(b));
    }),
  );
  t.end();
});

t.test("parse() returns a tree or errors for any text", (t) => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), (source) => {
      const { errors } = parse(source);
      return errors === undefined || renderErrors(errors, source).startsWith("ERROR: <input>:");
    }),
    { numRuns: 1000 },
  );
  t.end();
});
