import fc from "fast-check";
import t from "tap";
import { internFieldsV1, parseFieldsV1, releaseLongSets, stringifyFieldsV1 } from "../../value/fields-v1-cache.ts";
import { canonicalize, setOfPaths } from "./field-set.ts";
import { parseFields } from "./parse-fields.ts";

t.test("parseFields() converts every notation to the canonical set", (t) => {
  const read = (text: string) => JSON.stringify(parseFields(JSON.parse(text)));
  t.equal(read('{"f:b":{},"f:a":{".":{}}}'), '{"f:a":{},"f:b":{}}');
  t.equal(read('{"f:a":null,"x:later":{"f:b":{}}}'), '{"f:a":{}}');
  t.equal(read('{"f:a":{"k:{ \\"n\\": 1}":{".":{},"f:n":{}}}}'), '{"f:a":{"k:{\\"n\\":1}":{".":{},"f:n":{}}}}');
  t.same(parseFields(undefined), {});
  for (const text of ['"x"', "[]", "5", '{"a":{}}', '{"f:a":5}', '{"f:a":{"nonsense":{}}}', '{"__proto__":{"x":{}}}']) {
    t.throws(() => parseFields(JSON.parse(text)), SyntaxError, text);
  }
  t.end();
});

t.test("internFieldsV1() and parseFields() return one object for equal sets", (t) => {
  const set = canonicalize(setOfPaths(["f:a", "f:b"], ["f:c"]));
  const one = internFieldsV1(set);
  t.equal(internFieldsV1(structuredClone(set)), one);
  t.equal(parseFields(JSON.parse(JSON.stringify(set))), one);
  t.ok(Object.isFrozen(one));
  t.end();
});

t.test("the long sets of the latest writes are encoded and decoded once", (t) => {
  const longSet = (name: string) =>
    internFieldsV1(setOfPaths(...Array.from({ length: 1000 }, (_, index) => [`f:${name}`, `f:key${index}`])));
  const first = longSet("a");
  const text = stringifyFieldsV1(first);
  t.equal(parseFieldsV1(text), first);
  t.equal(longSet("a"), first);
  for (const name of ["b", "c", "d", "e"]) longSet(name);
  t.not(parseFieldsV1(text), first, "the oldest of five is dropped");
  t.same(parseFieldsV1(text), first);
  t.equal(stringifyFieldsV1(first), text);
  const last = parseFieldsV1(text);
  t.equal(parseFieldsV1(text), last);
  releaseLongSets();
  t.not(parseFieldsV1(text), last);
  t.end();
});

t.test("parseFields() returns a sorted set or throws for any JSON", (t) => {
  const element = fc.oneof(
    fc.constantFrom(".", "f:a", 'k:{"b":1,"a":"x"}', "v:1.0", "i:1", "x:y", "f:", "__proto__"),
    fc.string().map((text) => `f:${text}`),
    fc.json().map((text) => `v:${text}`),
    fc.json().map((text) => `k:${text}`),
  );
  const { fields } = fc.letrec((tie) => ({
    fields: fc.oneof({ maxDepth: 4 }, fc.constant({}), fc.constant(null), fc.dictionary(element, tie("fields"))),
  }));
  fc.assert(
    fc.property(fc.oneof(fields, fc.jsonValue()), (value) => {
      let set: ReturnType<typeof parseFields>;
      try {
        set = parseFields(value);
      } catch (error) {
        return error instanceof SyntaxError;
      }
      const text = JSON.stringify(set);
      return canonicalize(set) === set && JSON.stringify(parseFields(JSON.parse(text))) === text;
    }),
  );
  t.end();
});
