import t from "tap";
import { CacheMemory, cacheBudget, type EvictableObject } from "./cache-memory.ts";
import { History } from "./history.ts";

const MIB = 2 ** 20;

t.test("cacheBudget() is a part of the memory and of the heap", async (t) => {
  const budget = (memory: number, heap: number): number =>
    cacheBudget({ bytes: memory * MIB, heapBytes: heap * MIB }) / MIB;
  t.equal(budget(32_768, 4096), 192, "a large machine");
  t.equal(budget(1024, 512), 128);
  t.equal(budget(512, 256), 64);
  t.equal(budget(4096, 256), 64, "--max-old-space-size=256");
  t.equal(budget(64, 64), 16, "the least");
});

class Entry implements EvictableObject {
  readonly evictableBytes = 1000;
  evicted = false;
  evict(): void {
    this.evicted = true;
  }
}

t.test("objects, histories and queues share one budget", async (t) => {
  const memory = new CacheMemory(60_000);
  const add = (count: number): readonly Entry[] => {
    const entries = Array.from({ length: count }, () => new Entry());
    for (const entry of entries) memory.objects.touch(entry);
    return entries;
  };
  t.ok(add(60).filter(({ evicted }) => !evicted).length >= 30);
  const history = new History({ items: 1000, bytes: 2 ** 30 }, 0 as never, memory.history);
  for (let revision = 1; revision <= 100; revision++) history.push({ revision: revision as never, size: 500 });
  t.ok(memory.history.bytes <= 10_000 && memory.history.bytes >= 5000, `${memory.history.bytes}`);
  const entries = [...add(60), ...add(60)];
  const left = entries.filter(({ evicted }) => !evicted).length * 1000;
  t.ok(left + memory.history.bytes <= 60_000, `${left} with a history`);
  t.ok(memory.isTooLarge(20_000));
  t.notOk(memory.isTooLarge(10_000));
});
