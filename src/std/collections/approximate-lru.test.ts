import t from "tap";
import { ApproximateLru } from "./approximate-lru.ts";

function setUp(bytes: number) {
  const forgotten: string[] = [];
  const lru = new ApproximateLru<string>(
    () => bytes,
    (entry) => Number(entry.slice(1)),
    (entry) => forgotten.push(entry),
  );
  return { lru, forgotten };
}

t.test("ApproximateLru evicts the least recently used entries", async (t) => {
  const { lru, forgotten } = setUp(80);
  for (const entry of ["a20", "b20", "c20", "d20", "a20"]) lru.touch(entry);
  t.same(forgotten, []);
  for (const entry of ["e20", "f20"]) lru.touch(entry);
  t.same(forgotten, ["b20", "c20"], "what was used again stays");
});

t.test("ApproximateLru keeps entries of half its limit that are all used repeatedly", async (t) => {
  const { lru, forgotten } = setUp(80);
  for (let round = 0; round < 5; round++) for (const entry of ["a10", "b10", "c10", "d10"]) lru.touch(entry);
  t.same(forgotten, []);
});

t.test("ApproximateLru.delete() evicts the entry and subtracts its bytes", async (t) => {
  const { lru, forgotten } = setUp(80);
  for (let i = 0; i < 100; i++) {
    lru.touch(`a${30}`);
    lru.delete(`a${30}`);
  }
  t.equal(forgotten.length, 100);
  lru.touch("b30");
  lru.delete("never1");
  t.equal(forgotten.length, 100, "an entry that is not kept is not evicted");
});

t.test("ApproximateLru.clear() evicts all entries", async (t) => {
  const { lru, forgotten } = setUp(80);
  for (const entry of ["a30", "b20", "c20"]) lru.touch(entry);
  lru.clear();
  t.same(forgotten.sort(), ["a30", "b20", "c20"]);
  t.equal(lru.size, 0);
  for (const entry of ["d20", "e10"]) lru.touch(entry);
  t.equal(lru.size, 2);
});
