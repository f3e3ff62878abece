import fc from "fast-check";
import t from "tap";
import { anything, example, ManagedObject } from "../../testing/schema/apply-fixture.ts";
import { isPlainObject } from "../value/plain-object.ts";
import {
  difference,
  type FieldSet,
  intersection,
  isEmptySet,
  noFields,
  recursiveDifference,
  setOfPaths,
  setsEqual,
  union,
} from "./field-set.ts";
import { shapeOf } from "./shape.ts";
import { toFieldSet } from "./to-field-set.ts";

const item = (name: string, value?: string) => (value === undefined ? { name } : { name, value });
const text = (story: ManagedObject) => (story.value as { readonly text?: unknown }).text;

t.test("two managers that apply the same value share the field; a change is a conflict unless it is forced", (t) => {
  const story = new ManagedObject(example);
  t.same(story.apply("a", { text: "1", count: 1 }), []);
  t.same(story.apply("b", { text: "1" }), []);
  t.same(story.owned(), { a: { "f:count": {}, "f:text": {} }, b: { "f:text": {} } });
  t.same(story.apply("b", { text: "2" }), ["a: .text"]);
  t.equal(text(story), "1", "nothing happened");
  t.same(story.apply("b", { text: "2" }, { force: true }), []);
  t.same(story.owned(), { a: { "f:count": {} }, b: { "f:text": {} } });
  t.same(story.apply("a", { text: "1", count: 1 }), ["b: .text"]);
  t.equal(text(story), "2");
  t.end();
});

t.test("a field that its last manager no longer applies is removed, but not one that others applied or changed", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { text: "1", map: { x: "1", y: "1" }, list: [item("p"), item("q")] });
  story.apply("b", { map: { y: "1" }, list: [item("q", "b")] });
  story.update("c", { ...(story.value as object), map: { x: "1", y: "1", z: "1" }, count: 3 });
  t.same(story.apply("a", { list: [item("q")] }), []);
  t.same(story.value, { map: { y: "1", z: "1" }, list: [item("q", "b")], count: 3 });
  t.same(story.apply("b", {}), []);
  t.same(story.value, { map: { z: "1" }, list: [item("q")], count: 3 }, "the item of a and the field of c remain");
  t.same(Object.keys(story.owned()), ["a", "c"]);
  t.end();
});

t.test("an update takes over exactly the fields that it changes", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { text: "1", map: { x: "1" }, set: ["m"] });
  story.update("u", { text: "2", map: { x: "1" }, set: ["m", "n"] });
  t.same(story.owned(), {
    a: { "f:map": { "f:x": {} }, "f:set": { 'v:"m"': {} } },
    u: { "f:set": { 'v:"n"': {} }, "f:text": {} },
  });
  t.same(story.apply("a", { text: "1", map: { x: "1" }, set: ["m"] }), ["u: .text"]);
  story.update("u", { map: {} });
  t.same(story.owned(), {}, "removed fields have no manager");
  t.end();
});

t.test("an applier that no longer applies a field leaves it to the manager that changed it", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { text: "1", count: 1 });
  story.update("scaler", { text: "1", count: 5 });
  t.same(story.apply("a", { text: "1" }), []);
  t.same(story.value, { text: "1", count: 5 });
  t.same(story.apply("a", {}), []);
  t.same(story.value, { count: 5 });
  t.end();
});

t.test("an atomic value is one field", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { atomicMap: { x: "1" }, atomicList: ["1"] });
  t.same(story.apply("b", { atomicMap: { y: "1" } }), ["a: .atomicMap"]);
  t.same(story.apply("b", { atomicList: ["1", "2"] }, { force: true }), []);
  t.same(story.owned(), { a: { "f:atomicMap": {} }, b: { "f:atomicList": {} } });
  t.end();
});

t.test("items are identified by their keys, including defaults", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { list: [item("p", "1")] });
  t.same(story.apply("b", { list: [{ ...item("p", "2"), kind: "K" }] }), ['a: .list[kind="K",name="p"].value']);
  t.same(story.apply("b", { list: [{ ...item("p", "2"), kind: "Z" }] }), []);
  t.same(story.apply("b", { list: [] }), []);
  t.same(story.value, { list: [item("p", "1")] });
  t.end();
});

t.test("items with duplicate keys are one field of the manager that created them", (t) => {
  const story = new ManagedObject(example);
  story.update("u", { list: [item("p", "1"), item("p", "2"), item("q")] });
  const shared = 'k:{"kind":"K","name":"p"}';
  t.same(story.owned().u?.["f:list"]?.[shared], {});
  t.same(story.apply("a", { list: [item("p", "3")] }), [`u: .list[kind="K",name="p"]`]);
  t.same(story.apply("a", { list: [item("r")] }), []);
  t.same(story.value, { list: [item("p", "1"), item("p", "2"), item("q"), item("r")] });
  t.same(story.apply("a", { list: [item("p", "3")] }, { force: true }), []);
  t.same(story.value, { list: [item("p", "3"), item("q")] });
  t.end();
});

t.test("managers of a version that is no longer served are dropped", (t) => {
  const served = ["v1", "v2"];
  const story = new ManagedObject(example, served);
  story.apply("a", { text: "1", count: 1 });
  story.apply("b", { text: "1" }, { version: "v2" });
  served.shift();
  t.same(story.apply("b", { text: "2" }, { version: "v2" }), []);
  t.same(story.owned(), { b: { "f:text": {} } });
  t.same(story.value, { text: "2", count: 1 });
  t.end();
});

t.test("an applier can continue in another version", (t) => {
  const story = new ManagedObject(example, ["v1", "v2"]);
  story.apply("a", { text: "1", map: { x: "1", y: "1" } });
  t.same(story.apply("a", { map: { y: "1" } }, { version: "v2" }), []);
  t.same(story.value, { map: { y: "1" } });
  t.equal(story.managers.get("a")?.version, "v2");
  t.end();
});

t.test("filtered fields have no managers", (t) => {
  const story = new ManagedObject(example, ["v1"], (_, fields) => recursiveDifference(fields, setOfPaths(["f:map"])));
  t.same(story.apply("a", { text: "1", map: { x: "1" } }), []);
  t.same(story.owned(), { a: { "f:text": {} } });
  story.update("u", { text: "1", map: { x: "2" } });
  t.same(Object.keys(story.owned()), ["a"]);
  t.end();
});

t.test("members that have become atomic are one field of the managers of their parts", (t) => {
  const story = new ManagedObject(example);
  story.apply("a", { text: "1" });
  const old = setOfPaths(["f:atomicMap", "f:x"], ["f:atomicList", 'v:"1"'], ["f:atomicList"]);
  story.managers = new Map([["a", { version: "v1", applied: true, fields: old }]]);
  story.value = { atomicMap: { x: "1" }, atomicList: ["1"] };
  story.update("u", { atomicMap: { x: "1" }, atomicList: ["1"], text: "2" });
  t.same(story.owned(), { a: { "f:atomicList": {}, "f:atomicMap": {} }, u: { "f:text": {} } });
  t.end();
});

t.test("without a schema maps are granular and lists are atomic", (t) => {
  const story = new ManagedObject(anything);
  story.apply("a", { spec: { x: 1, l: [1] } });
  t.same(story.apply("b", { spec: { y: 1 } }), []);
  t.same(story.apply("b", { spec: { y: 1, l: [2] } }), ["a: .spec.l"]);
  t.same(story.apply("a", { spec: {} }), []);
  t.same(story.value, { spec: { y: 1 } });
  t.end();
});

const names = fc.constantFrom("x", "y", "z");
const values = fc.constantFrom("1", "2");
/** Without empty containers: a container that lost all members and is set again equals an empty one. */
const some = fc.dictionary(names, values, { minKeys: 1 });
const configuration = fc.record(
  {
    text: values,
    count: fc.integer({ min: 0, max: 2 }),
    map: some,
    atomicMap: some,
    set: fc.uniqueArray(names, { minLength: 1 }),
    atomicList: fc.array(names, { minLength: 1, maxLength: 2 }),
    list: fc.uniqueArray(fc.record({ name: names, value: values }, { requiredKeys: ["name"] }), {
      selector: ({ name }) => name,
      minLength: 1,
    }),
    object: fc.record({ text: values }),
    anything: fc.dictionary(names, fc.oneof(values, some), { minKeys: 1 }),
  },
  { requiredKeys: [] },
);
const step = fc.record({
  by: fc.constantFrom("a", "b", "c"),
  verb: fc.constantFrom("apply", "force", "update"),
  wanted: configuration,
});

function play(story: ManagedObject, steps: readonly { by: string; verb: string; wanted: unknown }[]): void {
  for (const { by, verb, wanted } of steps) {
    if (verb === "update") story.update(by, wanted);
    else story.apply(by, wanted, { force: verb === "force" });
  }
}

/** Treats a container without members as null, empty or absent alike. */
function essence(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, essence(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => !isNothing(member)));
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

const shape = shapeOf(example);
const fieldsOf = (value: unknown): FieldSet => toFieldSet(shape, value);

t.test("any sequence of writes: a repeated apply changes nothing", (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), configuration, (steps, wanted) => {
      const story = new ManagedObject(example);
      play(story, steps);
      story.apply("a", wanted, { force: true });
      const { value } = story;
      const owned = story.owned();
      t.same(story.apply("a", structuredClone(wanted)), [], "a repeated apply has no conflicts");
      t.same(essence(story.value), essence(value));
      t.same(story.owned(), owned);
    }),
    { numRuns: 200 },
  );
  t.end();
});

t.test("any sequence of writes: a forced apply owns its fields, and the object contains its configuration", (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), configuration, (steps, wanted) => {
      const story = new ManagedObject(example);
      play(story, steps);
      story.apply("a", wanted, { force: true });
      t.ok(setsEqual(story.managers.get("a")?.fields ?? noFields, fieldsOf(wanted)));
      const again = new ManagedObject(example);
      again.value = story.value;
      again.apply("b", wanted, { force: true });
      t.same(essence(again.value), essence(story.value), "applying again changes nothing");
    }),
    { numRuns: 200 },
  );
  t.end();
});

t.test("any sequence of writes: an apply without force takes no existing field from another manager", (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), configuration, (steps, wanted) => {
      const story = new ManagedObject(example);
      play(story, steps);
      const before = story.managers;
      const { value } = story;
      const conflicts = story.apply("a", wanted);
      if (conflicts.length > 0) {
        t.equal(story.managers, before);
        t.equal(story.value, value);
        return;
      }
      for (const [name, { fields }] of before) {
        if (name === "a") continue;
        const lost = difference(fields, story.managers.get(name)?.fields ?? noFields);
        t.ok(isEmptySet(intersection(lost, fieldsOf(story.value))), `${name} lost nothing that is still there`);
      }
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test("any sequence of writes: fields that an update removed have no manager", (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), configuration, (steps, wanted) => {
      const story = new ManagedObject(example);
      play(story, steps);
      story.update("u", wanted);
      const all = [...story.managers.values()].reduce((sum, { fields }) => union(sum, fields), noFields);
      const there = union(fieldsOf(wanted), containersOf(wanted));
      t.ok(isEmptySet(difference(all, there)));
    }),
    { numRuns: 200 },
  );
  t.end();
});

/** The containers in a value, which an update owns as well. */
function containersOf(value: object): FieldSet {
  const paths = Object.entries(value).flatMap(([name, member]) => [
    [`f:${name}`],
    ...(name === "anything" ? Object.keys(member as object).map((inner) => ["f:anything", `f:${inner}`]) : []),
  ]);
  return setOfPaths(...paths);
}
