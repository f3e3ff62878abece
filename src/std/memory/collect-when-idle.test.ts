import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { collectGarbageWhenIdle } from "./collect-when-idle.ts";

t.test("collectGarbageWhenIdle() collects twice each time a busy process becomes idle", async (t) => {
  const clock = new FakeClock();
  let cpu = 0;
  let collections = 0;
  const collect = (): void => {
    collections++;
    cpu += 300;
  };
  using _tidying = collectGarbageWhenIdle({ clock, collect, cpuMs: () => cpu });
  cpu += 2_000;
  await clock.advance(10_000);
  t.equal(collections, 0, "it works");
  await clock.advance(10_000);
  t.equal(collections, 1);
  await clock.advance(60_000);
  t.equal(collections, 2, "the collection itself is no work");
  cpu += 150;
  await clock.advance(60_000);
  t.equal(collections, 2, "nor is what a calm process does");
  cpu += 250;
  await clock.advance(60_000);
  t.equal(collections, 4);
});

t.test("collectGarbageWhenIdle() cancels its timer when disposed, and starts none without --expose-gc", (t) => {
  const clock = new FakeClock();
  collectGarbageWhenIdle({ clock, collect: () => undefined, cpuMs: () => 0 })[Symbol.dispose]();
  t.equal(clock.pending, 0);
  const { gc } = globalThis;
  delete (globalThis as { gc?: unknown }).gc;
  t.teardown(() => Object.assign(globalThis, { gc }));
  using _nothing = collectGarbageWhenIdle({ clock });
  t.equal(clock.pending, 0);
  t.end();
});
