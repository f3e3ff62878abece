import t from "tap";
import {
  boolean,
  double,
  int64,
  intOrString,
  list,
  listMap,
  listSet,
  map,
  object,
  optional,
  string,
  time,
} from "../../schema/define.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import { nameFormats } from "../../testing/cel/name-formats.ts";
import { compile } from "../cel.ts";
import { createEnvironment } from "../environment.ts";
import { renderErrors } from "../parse/source.ts";
import { dynType } from "../values/types.ts";
import { escapeName, unescapeName } from "./escape.ts";
import { toCelValue, toDynamicCelValue } from "./json-value.ts";
import { celTypeOf } from "./schema-type.ts";

const item = object("Item", { name: optional(1, string), size: optional(2, int64) });
const schema = object("Custom", {
  replicas: optional(1, int64),
  ratio: optional(2, double),
  on: optional(3, boolean),
  port: optional(4, intOrString),
  "my-name": optional(5, string),
  namespace: optional(6, string),
  "dotted.na/me__x": optional(7, string),
  "3rd": optional(8, string),
  at: optional(9, time),
  since: optional(10, { ...string, rules: { format: "duration" } }),
  day: optional(11, { ...string, rules: { format: "date" } }),
  data: optional(12, { ...string, rules: { format: "byte" } }),
  maybe: optional(13, { ...string, nullable: true }),
  labels: optional(14, map(string)),
  items: optional(15, listMap(item, "name")),
  set: optional(16, listSet(string)),
  plain: optional(17, list(string)),
  any: optional(18, { type: "raw", format: "json" }),
});

function evaluate(rule: string, self: unknown, among: Schema = schema, resourceRoot = false): unknown {
  const type = celTypeOf(among, { resourceRoot });
  if (type === undefined) return "no type";
  const environment = createEnvironment({ variables: { self: type, oldSelf: type }, nameFormats });
  const { program, errors } = compile(rule, environment);
  if (program === undefined) return renderErrors(errors, rule).split("\n")[0];
  const [first, second] = Array.isArray(self) ? self : [self, self];
  const { value, error } = program.evaluate({ self: toCelValue(among, first), oldSelf: toCelValue(among, second) });
  return error?.message ?? value;
}

t.test("toCelValue() converts each value to the type of its schema", (t) => {
  const self = {
    replicas: 3,
    ratio: 2,
    on: true,
    port: "http",
    "my-name": "x",
    namespace: "ns",
    "dotted.na/me__x": "d",
    at: "2020-01-02T03:04:05Z",
    since: "1h",
    day: "2020-01-02",
    data: "aGk=",
    labels: { "a-b": "c" },
  };
  const holding = [
    "self.replicas + 1 == 4 && type(self.replicas) == int",
    "self.ratio == 2.0 && type(self.ratio) == double",
    "self.port == 'http' && type(self.port) == string",
    "self.my__dash__name == 'x' && self.__namespace__ == 'ns' && self.dotted__dot__na__slash__me__underscores__x == 'd'",
    "self.at.getFullYear() == 2020 && self.since == duration('60m') && self.day.getDate() == 2",
    "string(self.data) == 'hi' && self.data.size() == 2",
    "self.labels['a-b'] == 'c' && 'a-b' in self.labels && !('x' in self.labels) && self.labels.all(k, k == 'a-b')",
    "has(self.on) && !has(self.set) && !has(self.maybe) && self.?maybe.orValue('none') == 'none'",
  ];
  for (const rule of holding) t.equal(evaluate(rule, self), true, rule);
  t.end();
});

t.test("toCelValue() parses all notations of the duration format", (t) => {
  const durations = {
    "1h30m": "90m",
    "2 days": "48h",
    "1 wk": "168h",
    "3 hr": "3h",
    "1day 2h": "26h",
    "5 minutes": "5m",
  };
  for (const [since, go] of Object.entries(durations)) {
    t.equal(evaluate(`self.since == duration('${go}')`, { since }), true, since);
  }
  t.end();
});

t.test("toCelValue() treats null in an object as absent, elsewhere as a value", (t) => {
  t.equal(evaluate("has(self.maybe)", { maybe: null }), false);
  t.equal(evaluate("self.maybe == 'x'", { maybe: null }), "no such key: maybe");
  const nullable = map({ ...string, nullable: true });
  t.equal(evaluate("dyn(self['a']) == null", { a: null }, nullable), true);
  t.end();
});

t.test("toCelValue() fails on access for values that do not match the schema", (t) => {
  const self = { replicas: "3", at: "yesterday", since: "soon", labels: { a: 1 }, items: {} };
  t.equal(evaluate("true || self.replicas == 3", self), true);
  t.equal(evaluate("self.replicas == 3", self), "invalid data, expected int, got string");
  t.equal(evaluate("self.replicas == 3", { replicas: 1.5 }), "invalid data, expected int, got number");
  t.equal(evaluate("self.at.getDate() == 3", self), "Invalid date-time formatted string yesterday");
  t.equal(evaluate("self.since > duration('1s')", self), "Invalid duration soon");
  t.equal(evaluate("self.labels.a == ''", self), "invalid data, expected string, got number");
  t.equal(evaluate("self.items.size() == 1", self), "invalid data, expected an array, got object");
  t.equal(evaluate("self.replicas == 1", {}), "no such key: replicas");
  t.equal(evaluate("self.labels.toString == ''", { labels: {} }), "no such key: toString");
  t.end();
});

t.test("toCelValue() compares and concatenates lists by list type", (t) => {
  const a = { items: [{ name: "a", size: 1 }, { name: "b" }], set: ["x", "y"], plain: ["x", "y"] };
  const b = { items: [{ name: "b" }, { name: "a", size: 1 }], set: ["y", "x"], plain: ["y", "x"] };
  t.equal(evaluate("self.items == oldSelf.items && self.set == oldSelf.set", [a, b]), true);
  t.equal(evaluate("self.plain == oldSelf.plain", [a, b]), false);
  t.equal(evaluate("(self.set + oldSelf.set).size() == 2 && (self.plain + oldSelf.plain).size() == 4", [a, b]), true);
  const changed = { ...b, items: [{ name: "c" }, { name: "a", size: 9 }] };
  t.equal(evaluate("(self.items + oldSelf.items).map(i, i.name) == ['a', 'b', 'c']", [a, changed]), true);
  t.equal(evaluate("(self.items + oldSelf.items)[0].size == 9", [a, changed]), true);
  t.equal(evaluate("self.items == oldSelf.items", [a, changed]), false);
  t.end();
});

t.test("toCelValue() compares members that expressions cannot access", (t) => {
  t.equal(evaluate("self == oldSelf", [{ "3rd": "a" }, { "3rd": "a" }]), true);
  t.equal(evaluate("self == oldSelf", [{ "3rd": "a" }, { "3rd": "b" }]), false);
  t.equal(evaluate("self == oldSelf", [{ any: { x: [1] } }, { any: { x: [1] } }]), true);
  t.equal(evaluate("self == oldSelf", [{ unknown: 1 }, { unknown: 2 }]), false);
  t.end();
});

t.test("celTypeOf() omits members without a type", (t) => {
  t.equal(evaluate("has(self.any)", {}), "ERROR: <input>:1:4: undefined field 'any'");
  t.equal(evaluate("has(self.metadata)", {}), "ERROR: <input>:1:4: undefined field 'metadata'");
  t.equal(celTypeOf({ type: "raw", format: "json" }), undefined);
  t.equal(celTypeOf(list({ type: "raw", format: "json" })), undefined);
  t.equal(celTypeOf(map({ type: "raw", format: "json" })), undefined);
  t.end();
});

t.test("celTypeOf() includes only the names in the metadata of a custom resource", (t) => {
  const self = { apiVersion: "v1", kind: "Custom", metadata: { name: "x", labels: {} } };
  t.equal(evaluate("self.metadata.name == 'x' && self.kind == 'Custom'", self, schema, true), true);
  t.equal(evaluate("!has(self.metadata.generateName)", self, schema, true), true);
  t.equal(evaluate("has(self.metadata.labels)", self, schema, true), "ERROR: <input>:1:4: undefined field 'labels'");
  const meta = object("Meta", {
    name: optional(1, string),
    generateName: optional(2, string),
    labels: optional(3, map(string)),
  });
  const kind = object("Kind", { apiVersion: optional(1, string), metadata: optional(2, meta) });
  t.equal(evaluate("self.metadata.labels.size() == 0", self, kind, true), true);
  const custom: ObjectSchema = { ...kind, unstructured: true };
  t.equal(evaluate("has(self.metadata.labels)", self, custom, true), "ERROR: <input>:1:4: undefined field 'labels'");
  const embedded: ObjectSchema = { ...object("E", {}), embeddedResource: true };
  t.equal(evaluate("self.kind == 'Custom'", self, embedded), true);
  t.end();
});

t.test("celTypeOf() supports recursive schemas", (t) => {
  const tree: ObjectSchema = object("Tree", { value: optional(1, int64), child: optional(2, () => tree) });
  const self = { value: 1, child: { value: 2, child: { value: 3 } } };
  t.equal(evaluate("self.child.child.value == 3 && !has(self.child.child.child)", self, tree), true);
  t.end();
});

t.test("toDynamicCelValue() converts any JSON", (t) => {
  const environment = createEnvironment({ variables: { d: dynType }, nameFormats });
  const d = toDynamicCelValue({ a: [1, 2.5, "x", null, true], b: { c: {} } });
  for (const rule of ["d.a[0] == 1 && d.a[1] == 2.5 && d.a[3] == null && d.a.size() == 5", "d.b.c.size() == 0"]) {
    t.equal(compile(rule, environment).program?.evaluate({ d }).value, true, rule);
  }
  t.end();
});

t.test("unescapeName() inverts escapeName()", (t) => {
  const names: Readonly<Record<string, string | undefined>> = {
    plain: "plain",
    a__b: "a__underscores__b",
    "a.b": "a__dot__b",
    "a-b": "a__dash__b",
    "a/b": "a__slash__b",
    namespace: "__namespace__",
    true: "__true__",
    _x: "_x",
    "1a": undefined,
    "": undefined,
    "a b": undefined,
    ä: undefined,
  };
  for (const [name, escaped] of Object.entries(names)) {
    t.equal(escapeName(name), escaped, name);
    if (escaped !== undefined) t.equal(unescapeName(escaped), name, escaped);
  }
  t.equal(unescapeName("a__what__b"), undefined);
  t.equal(unescapeName("a__namespace__"), undefined);
  t.end();
});
