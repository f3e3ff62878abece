import fc from "fast-check";
import t from "tap";
import { runSteps } from "../../std/async/steps.ts";
import { anything, example, ManagedObject } from "../../testing/schema/apply-fixture.ts";
import { isPlainObject } from "../value/plain-object.ts";
import {
  difference,
  type FieldSet,
  intersection,
  isEmptySet,
  LEAF,
  noFields,
  recursiveDifference,
  setOfPaths,
  setsEqual,
  union,
} from "./fieldpath/field-set.ts";
import { apply, type VersionedSet, type Versions } from "./managers.ts";
import { shapeOf } from "./shape.ts";
import { toFieldSet } from "./to-field-set.ts";

const item = (name: string, value?: string) => (value === undefined ? { name } : { name, value });
const text = (object: ManagedObject) => (object.value as { readonly text?: unknown }).text;

t.test("apply() throws a ConflictError with manager and path of each conflicting field", (t) => {
  const shape = shapeOf(example);
  const versions: Versions = {
    shapeOf: () => shape,
    convert: (value) => value,
    filter: (_, fields) => fields,
    stripMeta: (fields) => fields,
  };
  const manager: VersionedSet = { version: "v1", applied: true, fields: noFields };
  const context = {
    versions,
    live: { text: "a" },
    managers: new Map([["other", { ...manager, fields: { "f:text": LEAF } }]]),
    name: "me",
    manager,
    withFields: (managed: VersionedSet, fields: FieldSet): VersionedSet => ({ ...managed, fields }),
    isLong: false,
  };
  t.throws(() => runSteps(apply(context, { text: "b" }, false)), {
    name: "ConflictError",
    message: "1 fields have other managers",
    conflicts: [{ manager: "other", path: ["f:text"] }],
  });
  const { value, managers } = runSteps(apply(context, { text: "b" }, true));
  t.same([value, [...managers.keys()]], [{ text: "b" }, ["me"]]);
  t.end();
});

t.test("two managers that apply the same value share the field; a change is a conflict unless it is forced", (t) => {
  const object = new ManagedObject(example);
  t.same(object.apply("a", { text: "1", count: 1 }), []);
  t.same(object.apply("b", { text: "1" }), []);
  t.same(object.owned(), { a: { "f:count": {}, "f:text": {} }, b: { "f:text": {} } });
  t.same(object.apply("b", { text: "2" }), ["a: .text"]);
  t.equal(text(object), "1", "the object is unchanged");
  t.same(object.apply("b", { text: "2" }, { force: true }), []);
  t.same(object.owned(), { a: { "f:count": {} }, b: { "f:text": {} } });
  t.same(object.apply("a", { text: "1", count: 1 }), ["b: .text"]);
  t.equal(text(object), "2");
  t.end();
});

t.test(
  "a field that its last manager no longer applies is removed, but not one that others applied or changed",
  (t) => {
    const object = new ManagedObject(example);
    object.apply("a", { text: "1", map: { x: "1", y: "1" }, list: [item("p"), item("q")] });
    object.apply("b", { map: { y: "1" }, list: [item("q", "b")] });
    object.update("c", { ...(object.value as object), map: { x: "1", y: "1", z: "1" }, count: 3 });
    t.same(object.apply("a", { list: [item("q")] }), []);
    t.same(object.value, { map: { y: "1", z: "1" }, list: [item("q", "b")], count: 3 });
    t.same(object.apply("b", {}), []);
    t.same(object.value, { map: { z: "1" }, list: [item("q")], count: 3 }, "the item of a and the field of c remain");
    t.same(Object.keys(object.owned()), ["a", "c"]);
    t.end();
  },
);

t.test("an update takes over exactly the fields that it changes", (t) => {
  const object = new ManagedObject(example);
  object.apply("a", { text: "1", map: { x: "1" }, set: ["m"] });
  object.update("u", { text: "2", map: { x: "1" }, set: ["m", "n"] });
  t.same(object.owned(), {
    a: { "f:map": { "f:x": {} }, "f:set": { 'v:"m"': {} } },
    u: { "f:set": { 'v:"n"': {} }, "f:text": {} },
  });
  t.same(object.apply("a", { text: "1", map: { x: "1" }, set: ["m"] }), ["u: .text"]);
  object.update("u", { map: {} });
  t.same(object.owned(), {}, "removed fields have no manager");
  t.end();
});

t.test("an applier that no longer applies a field leaves it to the manager that changed it", (t) => {
  const object = new ManagedObject(example);
  object.apply("a", { text: "1", count: 1 });
  object.update("scaler", { text: "1", count: 5 });
  t.same(object.apply("a", { text: "1" }), []);
  t.same(object.value, { text: "1", count: 5 });
  t.same(object.apply("a", {}), []);
  t.same(object.value, { count: 5 });
  t.end();
});

t.test("an atomic value is one field", (t) => {
  const object = new ManagedObject(example);
  object.apply("a", { atomicMap: { x: "1" }, atomicList: ["1"] });
  t.same(object.apply("b", { atomicMap: { y: "1" } }), ["a: .atomicMap"]);
  t.same(object.apply("b", { atomicList: ["1", "2"] }, { force: true }), []);
  t.same(object.owned(), { a: { "f:atomicMap": {} }, b: { "f:atomicList": {} } });
  t.end();
});

t.test("items are identified by their keys, including defaults", (t) => {
  const object = new ManagedObject(example);
  object.apply("a", { list: [item("p", "1")] });
  t.same(object.apply("b", { list: [{ ...item("p", "2"), kind: "K" }] }), ['a: .list[kind="K",name="p"].value']);
  t.same(object.apply("b", { list: [{ ...item("p", "2"), kind: "Z" }] }), []);
  t.same(object.apply("b", { list: [] }), []);
  t.same(object.value, { list: [item("p", "1")] });
  t.end();
});

t.test("items with duplicate keys are one field of the manager that created them", (t) => {
  const object = new ManagedObject(example);
  object.update("u", { list: [item("p", "1"), item("p", "2"), item("q")] });
  const shared = 'k:{"kind":"K","name":"p"}';
  t.same(object.owned().u?.["f:list"]?.[shared], {});
  t.same(object.apply("a", { list: [item("p", "3")] }), [`u: .list[kind="K",name="p"]`]);
  t.same(object.apply("a", { list: [item("r")] }), []);
  t.same(object.value, { list: [item("p", "1"), item("p", "2"), item("q"), item("r")] });
  t.same(object.apply("a", { list: [item("p", "3")] }, { force: true }), []);
  t.same(object.value, { list: [item("p", "3"), item("q")] });
  t.end();
});

t.test("managers of a version that is no longer served are dropped", (t) => {
  const served = ["v1", "v2"];
  const object = new ManagedObject(example, served);
  object.apply("a", { text: "1", count: 1 });
  object.apply("b", { text: "1" }, { version: "v2" });
  served.shift();
  t.same(object.apply("b", { text: "2" }, { version: "v2" }), []);
  t.same(object.owned(), { b: { "f:text": {} } });
  t.same(object.value, { text: "2", count: 1 });
  t.end();
});

t.test("an applier can continue in another version", (t) => {
  const object = new ManagedObject(example, ["v1", "v2"]);
  object.apply("a", { text: "1", map: { x: "1", y: "1" } });
  t.same(object.apply("a", { map: { y: "1" } }, { version: "v2" }), []);
  t.same(object.value, { map: { y: "1" } });
  t.equal(object.managers.get("a")?.version, "v2");
  t.end();
});

t.test("filtered fields have no managers", (t) => {
  const object = new ManagedObject(example, ["v1"], (_, fields) => recursiveDifference(fields, setOfPaths(["f:map"])));
  t.same(object.apply("a", { text: "1", map: { x: "1" } }), []);
  t.same(object.owned(), { a: { "f:text": {} } });
  object.update("u", { text: "1", map: { x: "2" } });
  t.same(Object.keys(object.owned()), ["a"]);
  t.end();
});

t.test("members that have become atomic are one field of the managers of their parts", (t) => {
  const object = new ManagedObject(example);
  object.apply("a", { text: "1" });
  const old = setOfPaths(["f:atomicMap", "f:x"], ["f:atomicList", 'v:"1"'], ["f:atomicList"]);
  object.managers = new Map([["a", { version: "v1", applied: true, fields: old }]]);
  object.value = { atomicMap: { x: "1" }, atomicList: ["1"] };
  object.update("u", { atomicMap: { x: "1" }, atomicList: ["1"], text: "2" });
  t.same(object.owned(), { a: { "f:atomicList": {}, "f:atomicMap": {} }, u: { "f:text": {} } });
  t.end();
});

t.test("without a schema maps are granular and lists are atomic", (t) => {
  const object = new ManagedObject(anything);
  object.apply("a", { spec: { x: 1, l: [1] } });
  t.same(object.apply("b", { spec: { y: 1 } }), []);
  t.same(object.apply("b", { spec: { y: 1, l: [2] } }), ["a: .spec.l"]);
  t.same(object.apply("a", { spec: {} }), []);
  t.same(object.value, { spec: { y: 1 } });
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

function play(object: ManagedObject, steps: readonly { by: string; verb: string; wanted: unknown }[]): void {
  for (const { by, verb, wanted } of steps) {
    if (verb === "update") object.update(by, wanted);
    else object.apply(by, wanted, { force: verb === "force" });
  }
}

/** Treats a container without members as null, empty or absent alike. */
function withoutEmpty(value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withoutEmpty(member)] as const);
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
      const object = new ManagedObject(example);
      play(object, steps);
      object.apply("a", wanted, { force: true });
      const { value } = object;
      const owned = object.owned();
      t.same(object.apply("a", structuredClone(wanted)), [], "a repeated apply has no conflicts");
      t.same(withoutEmpty(object.value), withoutEmpty(value));
      t.same(object.owned(), owned);
    }),
    { numRuns: 200 },
  );
  t.end();
});

t.test("any sequence of writes: a forced apply owns its fields, and the object contains its configuration", (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), configuration, (steps, wanted) => {
      const object = new ManagedObject(example);
      play(object, steps);
      object.apply("a", wanted, { force: true });
      t.ok(setsEqual(object.managers.get("a")?.fields ?? noFields, fieldsOf(wanted)));
      const again = new ManagedObject(example);
      again.value = object.value;
      again.apply("b", wanted, { force: true });
      t.same(withoutEmpty(again.value), withoutEmpty(object.value), "applying again changes nothing");
    }),
    { numRuns: 200 },
  );
  t.end();
});

t.test("any sequence of writes: an apply without force takes no existing field from another manager", (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), configuration, (steps, wanted) => {
      const object = new ManagedObject(example);
      play(object, steps);
      const before = object.managers;
      const { value } = object;
      const conflicts = object.apply("a", wanted);
      if (conflicts.length > 0) {
        t.equal(object.managers, before);
        t.equal(object.value, value);
        return;
      }
      for (const [name, { fields }] of before) {
        if (name === "a") continue;
        const lost = difference(fields, object.managers.get(name)?.fields ?? noFields);
        t.ok(isEmptySet(intersection(lost, fieldsOf(object.value))), `${name} keeps all existing fields`);
      }
    }),
    { numRuns: 300 },
  );
  t.end();
});

t.test("any sequence of writes: fields that an update removed have no manager", (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), configuration, (steps, wanted) => {
      const object = new ManagedObject(example);
      play(object, steps);
      object.update("u", wanted);
      const all = [...object.managers.values()].reduce((sum, { fields }) => union(sum, fields), noFields);
      const existing = union(fieldsOf(wanted), containersOf(wanted));
      t.ok(isEmptySet(difference(all, existing)));
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
