/** The functions that compute in steps have the results of those that compute at once. */
import t from "tap";
import { runSteps, type Steps } from "../../std/async/steps.ts";
import { example } from "../../testing/schema/apply-fixture.ts";
import { deepEqual } from "../value/equal.ts";
import { compare, compareInSteps } from "./compare.ts";
import { compareElements, sortElements } from "./fieldpath/path-element.ts";
import { merge, mergeInSteps } from "./merge.ts";
import { shapeOf } from "./shape.ts";
import { toFieldSet, toFieldSetInSteps } from "./to-field-set.ts";

const shape = shapeOf(example);
const COUNT = 3000;

/** A generator of pseudorandom integers below `max`. */
function makeRandom(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * max);
  };
}

/** A long value with a part of all members and items, in any order. */
function makeValue(random: (max: number) => number): object {
  const pick = <T>(make: (index: number) => T): T[] => {
    const offset = random(1000);
    return Array.from({ length: COUNT }, (_, index) => (index * 7 + offset) % COUNT)
      .filter(() => random(3) > 0)
      .map(make);
  };
  const members = {
    map: Object.fromEntries(pick((index) => [`k${index}`, String(random(2))])),
    set: pick((index) => `s${index}`),
    list: pick((index) => ({ name: `n${index}`, kind: "K", value: String(random(2)) })),
    atomicMap: Object.fromEntries(pick((index) => [`a${index}`, String(random(2))])),
    text: String(random(2)),
  };
  return Object.fromEntries(Object.entries(members).filter(() => random(8) > 0));
}

function countSteps<T>(steps: Steps<T>): { readonly count: number; readonly value: T } {
  for (let count = 0; ; count++) {
    const { done, value } = steps.next();
    if (done === true) return { count, value };
  }
}

t.test(
  "compareInSteps(), toFieldSetInSteps() and mergeInSteps() have the results of the functions without steps",
  (t) => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = makeRandom(seed);
      const [before, after] = [makeValue(random), makeValue(random)];
      for (const [old, now] of [
        [before, after],
        [{}, after],
        [before, {}],
        [before, structuredClone(before)],
      ]) {
        t.ok(deepEqual(runSteps(compareInSteps(shape, old, now)), compare(shape, old, now)), `compare, seed ${seed}`);
      }
      const fields = toFieldSet(shape, before);
      const inSteps = runSteps(toFieldSetInSteps(shape, before));
      t.equal(JSON.stringify(inSteps), JSON.stringify(fields), `toFieldSet, seed ${seed}`);
      const merged = runSteps(mergeInSteps(shape, before, after));
      t.equal(JSON.stringify(merged), JSON.stringify(merge(shape, before, after)), `merge, seed ${seed}`);
    }
    t.end();
  },
);

t.test("the steps of long values are short", (t) => {
  const names = Array.from({ length: 20_000 }, (_, index) => `k${index}`);
  const map = (value: string) => ({ map: Object.fromEntries(names.map((name) => [name, value])) });
  const set = { set: names };
  for (const [what, steps] of Object.entries({
    "compare map": compareInSteps(shape, map("a"), map("b")),
    "compare set": compareInSteps(shape, {}, set),
    "fields of map": toFieldSetInSteps(shape, map("a")),
    "fields of set": toFieldSetInSteps(shape, set),
    "merge map": mergeInSteps(shape, map("a"), map("b")),
  })) {
    const { count } = countSteps<unknown>(steps as Steps<unknown>);
    t.ok(count >= 10, `${what}: ${count} steps`);
  }
  t.end();
});

t.test("sortElements() sorts as compareElements() does, whatever characters the elements have", (t) => {
  const texts = ["a", "ab", "a b", "a!", "a#", 'a"', "a\\", "é", "\ue000", "\u{1f600}", "", "&", "a1", "a10", "a2"];
  const elements = [
    ...texts.map((text) => `f:${text}`),
    ...texts.map((text) => `v:${JSON.stringify(text)}`),
    ...texts.map((text) => `k:${JSON.stringify({ name: text })}`),
    ...texts.map((text) => `k:${JSON.stringify({ a: text, name: "x" })}`),
    "v:1",
    "v:10",
    "v:2",
    "i:1",
    "i:10",
    "i:2",
    ".",
  ];
  for (let seed = 1; seed <= 60; seed++) {
    const random = makeRandom(seed);
    const kinds = ["f:", "v:", "k:", "i:", "."].filter(() => random(2) > 0);
    const some = elements.filter((element) => kinds.some((kind) => element.startsWith(kind)) && random(2) > 0);
    some.sort(() => random(3) - 1);
    t.same(sortElements([...some]), [...some].sort(compareElements), `seed ${seed}`);
  }
  t.end();
});
