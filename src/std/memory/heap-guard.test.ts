import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { HeapGuard } from "./heap-guard.ts";

t.test("HeapGuard collects to see what is live, and not too often", async (t) => {
  const clock = new FakeClock();
  const heap = { live: 0.3, garbage: 0.1 };
  let collections = 0;
  const crowded: boolean[] = [];
  const guard = new HeapGuard({
    clock,
    collect: () => {
      collections++;
      heap.garbage = 0;
    },
    usedShare: () => heap.live + heap.garbage,
    onCrowded: (isCrowded) => crowded.push(isCrowded),
  });
  const look = async (live: number, garbage: number): Promise<unknown> => {
    Object.assign(heap, { live, garbage });
    await clock.advance(100);
    return [guard.isExhausted(), collections];
  };
  t.same(await look(0.3, 0.1), [false, 0]);
  t.same(crowded, []);
  t.same(await look(0.3, 0.6), [false, 1], "garbage only");
  t.same(await look(0.82, 0.1), [false, 1], "a collection was a moment ago");
  await clock.advance(2000);
  t.same(await look(0.82, 0.1), [true, 2]);
  for (let i = 0; i < 10; i++) t.same(await look(0.85, 0.1), [true, 2]);
  t.same(await look(0.6, 0), [false, 2]);
  t.same(crowded, [true]);
  await look(0.4, 0);
  t.same(crowded, [true], "still");
  await look(0.3, 0);
  t.same(crowded, [true, false]);
  Object.assign(heap, { live: 0.9 });
  t.equal(guard.isExhausted(), false, "not looked at twice in 100 ms");
});
