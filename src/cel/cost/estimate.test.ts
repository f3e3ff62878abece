/** Cost estimates by schema: the figures by which Kubernetes accepts validation rules. */
import t from "tap";
import {
  boolean,
  double,
  int64,
  intOrString,
  list,
  map,
  object,
  optional,
  required,
  string,
} from "../../schema/define.ts";
import type { Schema } from "../../schema/schema.ts";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { celTypeOf } from "../adapter/schema-type.ts";
import { compile, type Program } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { fail } from "../values/value.ts";

function format(name: string): Schema {
  return { ...string, rules: { format: name } };
}

function text(maxLength?: number): Schema {
  return maxLength === undefined ? string : { ...string, rules: { maxLength } };
}

function listOf(items: Schema, maxItems?: number): Schema {
  return maxItems === undefined ? list(items) : { ...list(items), rules: { maxItems } };
}

function mapOf(values: Schema, maxProperties?: number): Schema {
  return maxProperties === undefined ? map(values) : { ...map(values), rules: { maxProperties } };
}

function programOf(schema: Schema, rule: string): Program {
  const self = celTypeOf(schema) ?? fail("no type");
  const { program, errors } = compile(rule, createEnvironment({ variables: { self, oldSelf: self }, nameFormats }));
  return program ?? fail(errors?.[0]?.message ?? "");
}

interface Case {
  readonly name: string;
  readonly rule: string;
  readonly schema: (bound?: number) => Schema;
  readonly unbounded: number;
  readonly bound: number;
  readonly bounded: number;
}

const all = "self.all(x, true)";
const strings = (bound?: number): Schema => listOf(text(bound), bound);

const cases: readonly Case[] = [
  { name: "integers", rule: all, schema: (b) => listOf(int64, b), unbounded: 4_718_591, bound: 10, bounded: 32 },
  { name: "booleans", rule: all, schema: (b) => listOf(boolean, b), unbounded: 1_887_437, bound: 10, bounded: 32 },
  {
    name: "numbers compared",
    rule: "self.all(x, x == 0.0)",
    schema: (b) => listOf(double, b),
    unbounded: 6_291_454,
    bound: 3 * 1024 * 2048,
    bounded: 25_165_826,
  },
  {
    name: "int or string",
    rule: all,
    schema: (b) => listOf(intOrString, b),
    unbounded: 4_718_591,
    bound: 10,
    bounded: 32,
  },
  {
    name: "one of int or string",
    rule: "self[0] == 5",
    schema: (b) => listOf(intOrString, b),
    unbounded: 3,
    bound: 10,
    bounded: 3,
  },
  {
    name: "one of booleans",
    rule: "self[0] == false",
    schema: (b) => listOf(boolean, b),
    unbounded: 2,
    bound: 25,
    bounded: 2,
  },
  {
    name: "durations",
    rule: all,
    schema: (b) => listOf(format("duration"), b),
    unbounded: 2_359_295,
    bound: 5,
    bounded: 17,
  },
  { name: "dates", rule: all, schema: (b) => listOf(format("date"), b), unbounded: 725_936, bound: 15, bounded: 47 },
  {
    name: "times",
    rule: all,
    schema: (b) => listOf(format("date-time"), b),
    unbounded: 428_963,
    bound: 25,
    bounded: 77,
  },
  {
    name: "one of durations",
    rule: "self[0].getHours() == 2",
    schema: (b) => listOf(format("duration"), b),
    unbounded: 4,
    bound: 525,
    bounded: 4,
  },
  {
    name: "map of int or string",
    rule: all,
    schema: (b) => mapOf(intOrString, b),
    unbounded: 1_348_169,
    bound: 15,
    bounded: 47,
  },
  {
    name: "map of durations",
    rule: all,
    schema: (b) => mapOf(format("duration"), b),
    unbounded: 1_048_577,
    bound: 5,
    bounded: 17,
  },
  {
    name: "map of dates",
    rule: all,
    schema: (b) => mapOf(format("date"), b),
    unbounded: 524_288,
    bound: 10,
    bounded: 32,
  },
  {
    name: "map of times",
    rule: all,
    schema: (b) => mapOf(format("date-time"), b),
    unbounded: 349_526,
    bound: 25,
    bounded: 77,
  },
  {
    name: "map of maps",
    rule: all,
    schema: (b) => mapOf(map(double), b),
    unbounded: 1_179_647,
    bound: 10,
    bounded: 32,
  },
  { name: "presence", rule: "has(self.x)", schema: (b) => mapOf(double, b), unbounded: 1, bound: 10, bounded: 1 },
  {
    name: "two times",
    rule: 'self["a"] == self["b"]',
    schema: (b) => mapOf(format("date-time"), b),
    unbounded: 8,
    bound: 7,
    bounded: 8,
  },
  {
    name: "sizes",
    rule: "oldSelf.size() == self.size()",
    schema: (b) => mapOf(int64, b),
    unbounded: 5,
    bound: 10,
    bounded: 5,
  },
  { name: "text", rule: 'self == "x"', schema: text, unbounded: 2, bound: 0, bounded: 1 },
  { name: "find", rule: "self.find('[0-9]+') == ''", schema: text, unbounded: 629_147, bound: 10, bounded: 11 },
  {
    name: "lowerAscii",
    rule: "self.lowerAscii() == 'lower!'",
    schema: text,
    unbounded: 314_575,
    bound: 10,
    bounded: 6,
  },
  {
    name: "join",
    rule: "self.join(' ') == 'aa bb'",
    schema: strings,
    unbounded: 329_853_068_905,
    bound: 10,
    bounded: 43,
  },
  {
    name: "isSorted",
    rule: "self.isSorted() == true",
    schema: strings,
    unbounded: 329_854_432_052,
    bound: 10,
    bounded: 52,
  },
  {
    name: "replace",
    rule: "self.str.replace(self.before, self.after) == 'does not matter'",
    schema: (b) =>
      object("X", { str: optional(1, text(b)), before: optional(2, text(2)), after: optional(3, text(4)) }),
    unbounded: 629_154,
    bound: 4,
    bounded: 12,
  },
  {
    name: "split",
    rule: "self.str.split(self.separator) == []",
    schema: (b) => object("X", { str: optional(1, text(b)), separator: optional(2, text(b)) }),
    unbounded: 629_160,
    bound: 10,
    bounded: 22,
  },
  {
    name: "enumerated text",
    rule: "self.contains('A')",
    schema: (b) => ({
      ...string,
      rules: { enum: ["A", "B", "C", "LongValue"], ...(b !== undefined && { maxLength: b }) },
    }),
    unbounded: 2,
    bound: 1000,
    bounded: 401,
  },
];

t.test("estimateCost() equals Kubernetes' estimates", (t) => {
  for (const { name, rule, schema, unbounded, bound, bounded } of cases) {
    t.equal(programOf(schema(), rule).estimate.max, unbounded, `${name}: without a bound`);
    t.equal(programOf(schema(bound), rule).estimate.max, bounded, `${name}: with a bound`);
  }
  t.end();
});

t.test("estimateCost() derives the sizes of lists and maps that expressions create", (t) => {
  const self = object("X", { list1: optional(1, listOf(text(16), 10)), list2: optional(2, listOf(text(32), 20)) });
  const estimates: Readonly<Record<string, readonly [number, number]>> = {
    "1 < 2": [1, 1],
    "[1, 2, 3].all(x, true)": [20, 20],
    "self.list1.size() == self.list2.size()": [7, 7],
    "[self.list1, self.list2].exists(l, l.exists(v, v.startsWith('hi')))": [23, 27],
    "[1, 2, 3, 4, 5].filter(x, x % 2 == 0)": [41, 101],
    "[1, 2, 3, 4, 5].map(x, x).filter(x, x % 2 == 0)": [117, 177],
    "[1, 2, 3, 4, 5].map(x, [x, x]).all(y, y.all(y, y == 1))": [157, 167],
    "[1, 2, 3].all(i, i in [1, 2, 3].map(j, j + j))": [20, 230],
    "[1, 2, 3, 4, 5].map(x, x).map(x, x) + [1]": [173, 173],
    "{'hello': 'hi'}['hello'] != {'hello': 'bye'}['hello']": [63, 63],
    "((5 != 6) == (1 == 2)) == ((3 <= 4) == (9 != 9))": [7, 7],
    "type(1) == int": [2, 2],
  };
  for (const [rule, [min, max]] of Object.entries(estimates)) {
    const { estimate } = programOf(self, rule);
    t.same([estimate.min, estimate.max], [min, max], rule);
  }
  t.end();
});

/** The cost of traversing a text of unknown size. */
const UNKNOWN_TEXT = Math.ceil(2 ** 64 * 0.1);

t.test(
  "estimateCost() equals Kubernetes' estimates for parts of conditionals, created lists, and shared paths",
  (t) => {
    const part = object("Part", {
      name: optional(1, text(20)),
      note: optional(2, string),
      tags: optional(3, listOf(text(4), 3)),
    });
    const self = object("X", {
      enabled: optional(1, boolean),
      name: optional(2, text(20)),
      note: optional(3, string),
      names: optional(4, listOf(text(16), 10)),
      notes: optional(5, list(string)),
      part: optional(6, part),
      parts: optional(7, listOf(part, 6)),
      labels: optional(8, mapOf(text(12), 8)),
    });
    const estimates: readonly (readonly [rule: string, max: number])[] = [
      ["(self.enabled ? self.names : []).exists(n, n.contains('/'))", 63],
      ["(self.enabled ? self.notes : []).exists(n, n.contains('/'))", 5242888],
      ["self.parts.exists(p, p.tags.exists(t, t == p.name))", 4365],
      ["self.parts.exists(p, p.tags.exists(t, p.name == t))", 4365],
      ["self.parts.all(p, p.tags.all(t, t != p.note))", 150994887],
      ["self.names.filter(n, n != 'a').all(n, n.startsWith('b'))", 214],
      ["self.parts.map(p, p.name).all(n, n.matches('^[a-z]+$'))", 134],
      ["self.parts.map(p, p.note)[0].contains(self.name)", 2516684],
      ["[self.names, self.notes].exists(l, l.exists(n, n.startsWith('a')))", 27],
      ["[self.name, self.note].all(n, n == 'a')", 23],
      ["dyn(self.names).all(n, n == 'a')", 44],
      ["dyn([self.name, self.note]).all(n, n == 'a')", 24],
      ["self.labels.all(k, self.labels[k] == k)", 67],
      ["self.labels.map(k, self.labels[k]).all(v, v == 'a')", 174],
      ["self.labels.name == 'a'", 4],
      ["self.labels.name.contains('a')", UNKNOWN_TEXT],
      ["(self.enabled ? self.part : self.part).name == self.note", 7],
      ["[self.part][0].note.contains('a')", 314587],
      ["self.name.split(',').all(n, n.contains('a'))", 339],
      ["(self.names + self.notes).exists_one(n, n == 'a')", 3145762],
      ["[self.names, self.names].all(l, l.isSorted())", 23],
      ["self == oldSelf", 2],
      ["self.part == oldSelf.part", 4],
      ["self.parts == oldSelf.parts", 5],
      ["self.name.replace('a', self.note).size() < 5", 22],
      ["self.?name.orValue('a').contains('b')", UNKNOWN_TEXT],
      ["sets.contains(self.names.map(n, n + 'a'), self.parts.map(p, p.name))", 371],
      ["url(self.note).getHost() == 'a'", 314577],
      ["string(self.enabled).contains('a')", UNKNOWN_TEXT],
    ];
    for (const [rule, max] of estimates) t.equal(programOf(self, rule).estimate.max, max, rule);
    t.end();
  },
);

t.test("estimateCost() accepts calls without arguments that are not type-checked", (t) => {
  const { program } = compile("dyn()", createEnvironment({ variables: {}, nameFormats, unchecked: true }));
  t.equal(program?.estimate.max, 1);
  t.end();
});

t.test("estimateCost() reports unbounded parts, the most expensive first", (t) => {
  const self = object("X", {
    items: optional(1, list(object("Item", { name: required(1, string), tags: optional(2, list(string)) }))),
    labels: optional(2, map(string)),
    short: optional(3, listOf(text(10), 10)),
  });
  const rule =
    "self.items.all(i, i.name.contains('b') && i.tags.all(t, t.contains('a'))) && self.labels.all(k, true) && self.short.all(s, s != '')";
  t.same(programOf(self, rule).estimate.unbounded, [
    { path: "self.items[*].tags", bound: "maxItems" },
    { path: "self.items", bound: "maxItems" },
    { path: "self.items[*].tags[*]", bound: "maxLength" },
    { path: "self.items[*].name", bound: "maxLength" },
    { path: "self.labels", bound: "maxProperties" },
  ]);
  t.same(programOf(self, "self.short.all(s, s != '')").estimate.unbounded, []);
  t.end();
});
