import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { collectGarbageWhenIdle } from "./collect-when-idle.ts";

t.test("collectGarbageWhenIdle() collects twice each time a busy process becomes idle", async (t) => {
  const clock = new FakeClock();
  let cpu = 0;
  let collections = 0;
  let trims = 0;
  const collect = (): void => {
    collections++;
    cpu += 300;
  };
  const trim = (): void => void trims++;
  let idle = 0;
  const onIdle = (): void => void idle++;
  const memory = () => ({ committed: 110, used: 100 });
  const residentBytes = () => 0;
  using _tidying = collectGarbageWhenIdle({ clock, collect, trim, onIdle, cpuMs: () => cpu, memory, residentBytes });
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
  t.equal(collections, 2, "nor is a little more");
  cpu += 1_000;
  await clock.advance(60_000);
  t.equal(collections, 4);
  t.equal(trims, 4, "after each collection");
  t.equal(idle, 2, "once each time");
});

t.test(
  "collectGarbageWhenIdle() collects every ten minutes in a process whose CPU use is around the limit",
  async (t) => {
    const clock = new FakeClock();
    let cpu = 0;
    let collections = 0;
    const memory = () => ({ committed: 110, used: 100 });
    using _collecting = collectGarbageWhenIdle({
      clock,
      collect: () => collections++,
      cpuMs: () => cpu,
      memory,
      residentBytes: () => 0,
    });
    for (let check = 0; check < 360; check++) {
      cpu += check % 2 === 0 ? 150 : 250;
      await clock.advance(10_000);
    }
    t.ok(collections > 5 && collections <= 14, `${collections} in an hour`);
  },
);

t.test("collectGarbageWhenIdle() collects in a process in use that holds more memory than it needs", async (t) => {
  const clock = new FakeClock();
  let cpu = 0;
  let collections = 0;
  let committed = 200;
  let afterwards = 120;
  const collect = (): void => {
    collections++;
    committed = afterwards;
  };
  const memory = () => ({ committed, used: 100 });
  using _collecting = collectGarbageWhenIdle({ clock, collect, cpuMs: () => cpu, memory, residentBytes: () => 0 });
  const use = async (share: number, minutes = 1): Promise<number> => {
    collections = 0;
    for (let check = 0; check < minutes * 6; check++) {
      cpu += share * 10_000;
      await clock.advance(10_000);
    }
    return collections;
  };
  t.equal(await use(0.1, 5), 1, "five requests a second");
  committed = 140;
  t.equal(await use(0.1, 5), 0, "less than 1.5 times what is live");
  committed = 160;
  t.equal(await use(0.8, 5), 0, "a busy process collects by itself");
  t.equal(await use(0.1), 1);
  committed = afterwards = 200;
  t.equal(await use(0.1, 15), 4, "ever more rarely when it does not help: after 1, 2, 4 and 8 minutes");
  t.equal(await use(0), 2, "an idle process collects twice");
});

t.test("collectGarbageWhenIdle() compacts a fragmented heap with the second collection", async (t) => {
  for (const [committed, flavors] of [
    [130, ["regular", "last-resort"]],
    [120, ["regular", "regular"]],
  ] as const) {
    const clock = new FakeClock();
    const found: string[] = [];
    const collect = (options?: { readonly flavor: string }) => found.push(options?.flavor ?? "regular");
    using _idle = collectGarbageWhenIdle({
      clock,
      collect,
      cpuMs: () => 0,
      memory: () => ({ committed, used: 100 }),
      residentBytes: () => 0,
    });
    await clock.advance(60_000);
    t.same(found, flavors, String(committed));
  }
});

t.test("collectGarbageWhenIdle() compacts the heap once after each five seconds of work", async (t) => {
  const clock = new FakeClock();
  let cpu = 0;
  const found: string[] = [];
  const collect = (options?: { readonly flavor: string }): void => {
    found.push(options?.flavor ?? "regular");
    cpu += 3_000;
  };
  const memory = () => ({ committed: 100, used: 100 });
  using _idle = collectGarbageWhenIdle({ clock, collect, cpuMs: () => cpu, memory, residentBytes: () => 0 });
  const work = async (...shares: readonly number[]): Promise<readonly string[]> => {
    found.length = 0;
    for (const share of [...shares, 0, 0, 0]) {
      cpu += share * 10_000;
      await clock.advance(10_000);
    }
    return [...found];
  };
  t.same(await work(0.4), ["regular", "regular"]);
  t.same(await work(0.2), ["regular", "last-resort"], "with the work before");
  t.same(await work(0.2), ["regular", "regular"], "work counts once, and collections do not");
  t.same(await work(0.8, 0.8), ["regular", "last-resort"]);
  for (let round = 0; round < 360; round++) await work(0.015);
  t.notOk((await work(0.2)).includes("last-resort"), "nor does an idle process");
});

t.test("collectGarbageWhenIdle() collects when the resident memory of an idle process has grown", async (t) => {
  const MIB = 2 ** 20;
  const clock = new FakeClock();
  let resident = 100 * MIB;
  let cpu = 0;
  let freed = 20 * MIB;
  let collections = 0;
  const collect = (): void => {
    collections++;
    resident -= freed;
    freed = 0;
  };
  const memory = () => ({ committed: 110, used: 100 });
  const residentBytes = () => resident;
  using _idle = collectGarbageWhenIdle({ clock, collect, cpuMs: () => cpu, memory, residentBytes });
  const rest = async (minutes: number): Promise<number> => {
    collections = 0;
    for (let check = 0; check < minutes * 6; check++) await clock.advance(10_000);
    return collections;
  };
  t.equal(await rest(2), 2, "after the start");
  resident += 7 * MIB;
  t.equal(await rest(5), 0, "a little");
  // As the compaction of a store does: too little to be work.
  cpu += 700;
  resident += 30 * MIB;
  freed = 35 * MIB;
  t.equal(await rest(2), 2);
  t.equal(resident, 82 * MIB);
  resident += 10 * MIB;
  freed = 10 * MIB;
  t.equal(await rest(2), 2, "slowly, without any work");
  let all = 0;
  for (let minute = 0; minute < 60; minute++) {
    resident += 10 * MIB;
    all += await rest(1);
  }
  t.ok(all <= 14, `ever more rarely when it does not help: ${all} in an hour`);
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
