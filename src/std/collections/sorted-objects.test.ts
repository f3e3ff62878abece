import t from "tap";
import { seededRandom } from "../crypto/random.ts";
import { SortedObjects } from "./sorted-objects.ts";

t.test("SortedObjects has the same content as a sorted map", async (t) => {
  const random = seededRandom(11);
  const sorted = new SortedObjects<{ key: string; value: number }>();
  const model = new Map<string, number>();
  for (let value = 0; value < 2000; value++) {
    const key = `/${"abc"[Math.floor(random.fraction() * 3)]}/${Math.floor(random.fraction() * 50)}`;
    if (random.fraction() < 0.3) {
      sorted.delete(key);
      model.delete(key);
    } else {
      sorted.set({ key, value });
      model.set(key, value);
    }
  }
  for (const prefix of ["", "/", "/a/", "/b/1", "/c", "/d", "/a/49/"]) {
    const expected = [...model].filter(([key]) => key.startsWith(prefix)).sort(([a], [b]) => (a < b ? -1 : 1));
    t.same(
      sorted.prefixed(prefix).map(({ key, value }) => [key, value]),
      expected,
      prefix,
    );
  }
  t.equal(sorted.size, model.size);
  t.equal(sorted.get("/nowhere"), undefined);
  for (const [key, value] of model) t.equal(sorted.get(key)?.value, value);
});
