import fc from "fast-check";
import t from "tap";
import {
  canonicalize,
  difference,
  type FieldSet,
  hasField,
  intersection,
  isEmptySet,
  leavesOf,
  noFields,
  pathsOf,
  recursiveDifference,
  setOfPaths,
  setsEqual,
  sizeOf,
  union,
} from "./field-set.ts";
import { parseFields } from "./parse-fields.ts";
import { formatPath } from "./path-element.ts";

const of = (...paths: readonly string[]): FieldSet =>
  setOfPaths(...paths.map((path) => path.split(".").map((p) => `f:${p}`)));
const texts = (set: FieldSet): readonly string[] => [...pathsOf(set)].map((path) => formatPath(path).slice(1));

const operations = [
  ["union", union, ["a", "a.b"], ["a.b", "c.d"], ["a", "a.b", "c.d"]],
  ["intersection", intersection, ["a", "a.b", "c"], ["a.b", "a.c", "c"], ["c", "a.b"]],
  ["intersection of a parent and its child", intersection, ["a"], ["a.b"], []],
  ["difference", difference, ["a", "a.b", "c"], ["a", "c"], ["a.b"]],
  ["difference keeps a parent without its child", difference, ["a", "a.b"], ["a.b"], ["a"]],
  ["difference of equal sets", difference, ["a.b", "c"], ["a.b", "c"], []],
  ["recursiveDifference", recursiveDifference, ["a", "a.b", "a.b.c", "d"], ["a.b"], ["a", "d"]],
  ["recursiveDifference of a grandchild", recursiveDifference, ["a.b.c"], ["a.b.c.d"], ["a.b.c"]],
] as const;

for (const [name, operation, a, b, expected] of operations) {
  t.test(`${name}() of ${a.join(" ")} and ${b.join(" ")}`, (t) => {
    const result = operation(of(...a), of(...b));
    t.same(texts(result), expected);
    t.ok(setsEqual(result, of(...expected)));
    t.equal(isEmptySet(result), expected.length === 0);
    t.end();
  });
}

t.test("leavesOf() and sizeOf() distinguish fields from their parents", (t) => {
  const set = of("a", "a.b", "c", "d.e");
  t.same(texts(leavesOf(set)), ["c", "a.b", "d.e"]);
  t.equal(sizeOf(set), 4);
  t.ok(hasField(set, "f:a"));
  t.notOk(hasField(set, "f:d"));
  t.notOk(hasField(set, "f:d", "f:e", "f:f"));
  t.notOk(hasField(set));
  t.end();
});

t.test("canonicalize() sorts names before keys, keys before values, values before indexes", (t) => {
  const unsorted = parseFields(
    JSON.parse(
      `{"i:1":{},"v:\\"b\\"":{},"v:2":{},"k:{\\"p\\":80}":{},"k:{\\"p\\":9}":{},"f:b":{"f:z":{},".":{}},"f:a":{}}`,
    ),
  );
  const sorted = `{"f:a":{},"f:b":{".":{},"f:z":{}},"k:{\\"p\\":9}":{},"k:{\\"p\\":80}":{},"v:2":{},"v:\\"b\\"":{},"i:1":{}}`;
  t.equal(JSON.stringify(canonicalize(unsorted)), sorted);
  const set = canonicalize(unsorted);
  t.equal(canonicalize(set), set, "a sorted set is returned itself");
  t.end();
});

const element = fc.oneof(
  fc.constantFrom("f:a", "f:b", "f:c", 'k:{"n":"x"}', 'k:{"n":"y"}', 'v:"s"', "i:0"),
  fc.string().map((name) => `f:${name}`),
);
const set = fc
  .array(fc.array(element, { minLength: 1, maxLength: 4 }), { maxLength: 8 })
  .map((paths) => setOfPaths(...paths));

const plain = (fields: FieldSet): readonly string[] => [...pathsOf(fields)].map((path) => path.join("\0"));

t.test("the operations equal those on sets of paths", (t) => {
  const same = (fields: FieldSet, expected: readonly string[]): boolean => {
    const found = plain(fields);
    const unique = new Set(expected);
    return found.length === unique.size && found.every((path) => unique.has(path)) && sizeOf(fields) === unique.size;
  };
  const agrees = (a: FieldSet, b: FieldSet): boolean => {
    const [ours, theirs] = [plain(a), plain(b)];
    const isBelow = (path: string): boolean => theirs.some((other) => path === other || path.startsWith(`${other}\0`));
    return (
      same(union(a, b), [...ours, ...theirs]) &&
      same(
        intersection(a, b),
        ours.filter((path) => theirs.includes(path)),
      ) &&
      same(
        difference(a, b),
        ours.filter((path) => !theirs.includes(path)),
      ) &&
      same(
        recursiveDifference(a, b),
        ours.filter((path) => !isBelow(path)),
      )
    );
  };
  fc.assert(fc.property(set, set, agrees));
  t.end();
});

t.test("the operations obey the laws of sets", (t) => {
  fc.assert(fc.property(set, set, (a, b) => setsEqual(union(a, b), union(b, a))));
  fc.assert(fc.property(set, set, set, (a, b, c) => setsEqual(union(union(a, b), c), union(a, union(b, c)))));
  fc.assert(fc.property(set, set, (a, b) => setsEqual(intersection(a, b), difference(a, difference(a, b)))));
  fc.assert(fc.property(set, (a) => isEmptySet(difference(a, a)) && setsEqual(union(a, noFields), a)));
  fc.assert(fc.property(set, (a) => setsEqual(parseFields(JSON.parse(JSON.stringify(canonicalize(a)))), a)));
  fc.assert(fc.property(set, (a) => setsEqual(canonicalize(a), a)));
  t.end();
});
