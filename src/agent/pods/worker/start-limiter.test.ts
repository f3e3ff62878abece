import t from "tap";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { isCpuBusy, StartLimiter } from "./start-limiter.ts";

interface Fixture extends Disposable {
  readonly clock: FakeClock;
  isBusy: boolean;
  /** Slots by name, in the order in which they were acquired. */
  readonly slots: Map<string, Disposable>;
  start(name: string, priority?: number, signal?: AbortSignal): Promise<void>;
  started(): Promise<string>;
}

function createFixture(minConcurrent = 2): Fixture {
  const clock = new FakeClock();
  const slots = new Map<string, Disposable>();
  const never = new AbortController();
  const limiter = new StartLimiter({ clock, minConcurrent, isBusy: () => fixture.isBusy });
  const fixture: Fixture = {
    clock,
    isBusy: true,
    slots,
    async start(name, priority = 0, signal = never.signal) {
      slots.set(name, await limiter.acquire(priority, signal));
    },
    async started() {
      await clock.advance(0);
      return [...slots.keys()].join("");
    },
    [Symbol.dispose]: () => limiter[Symbol.dispose](),
  };
  return fixture;
}

t.test("StartLimiter starts pods on busy CPUs one after the other, in the order of their requests", async (t) => {
  using fixture = createFixture();
  for (const name of "abcd") void fixture.start(name);
  t.equal(await fixture.started(), "ab");
  fixture.slots.get("b")?.[Symbol.dispose]();
  t.equal(await fixture.started(), "abc");
  fixture.slots.get("b")?.[Symbol.dispose]();
  t.equal(await fixture.started(), "abc", "a slot is released once");
  fixture.slots.get("a")?.[Symbol.dispose]();
  t.equal(await fixture.started(), "abcd");
});

t.test("StartLimiter starts pods of higher priority first", async (t) => {
  using fixture = createFixture(1);
  for (const [name, priority] of Object.entries({ a: 0, b: 0, c: 1000, d: 0 })) void fixture.start(name, priority);
  t.equal(await fixture.started(), "a");
  for (const name of "acb") {
    fixture.slots.get(name)?.[Symbol.dispose]();
    await fixture.started();
  }
  t.equal(await fixture.started(), "acbd");
});

t.test("StartLimiter starts further pods while the CPUs are idle", async (t) => {
  using fixture = createFixture();
  fixture.isBusy = false;
  for (const name of "abcdef") void fixture.start(name);
  t.equal(await fixture.started(), "ab", "the load is measured again after 20 ms");
  await fixture.clock.advance(20);
  t.equal(await fixture.started(), "abc");
  fixture.isBusy = true;
  await fixture.clock.advance(100);
  t.equal(await fixture.started(), "abc");
  fixture.isBusy = false;
  await fixture.clock.advance(40);
  t.equal(await fixture.started(), "abcde");
  fixture.isBusy = true;
  await fixture.clock.advance(100);
  t.equal(await fixture.started(), "abcde");
});

t.test("StartLimiter releases the slot of a pod that hangs", async (t) => {
  using fixture = createFixture();
  for (const name of "abcdef") void fixture.start(name);
  await fixture.clock.advance(499);
  t.equal(await fixture.started(), "ab");
  await fixture.clock.advance(1);
  t.equal(await fixture.started(), "abcd");
  await fixture.clock.advance(500);
  t.equal(await fixture.started(), "abcdef");
});

t.test("StartLimiter removes a waiting pod whose signal aborts", async (t) => {
  using fixture = createFixture(1);
  const stop = new AbortController();
  void fixture.start("a");
  const cancelled = fixture.start("b", 0, stop.signal);
  void fixture.start("c");
  stop.abort(new Error("deleted"));
  await t.rejects(cancelled, { message: "deleted" });
  await t.rejects(fixture.start("d", 0, stop.signal), { message: "deleted" });
  fixture.slots.get("a")?.[Symbol.dispose]();
  t.equal(await fixture.started(), "ac");
  fixture.slots.get("c")?.[Symbol.dispose]();
  await fixture.clock.advance(1_000);
  t.equal(fixture.clock.pending, 0, "no timer runs while no pod waits");
});

t.test("isCpuBusy() compares the runnable threads with the CPUs", (t) => {
  t.equal(isCpuBusy(0), true, "this test is a runnable thread");
  t.equal(isCpuBusy(1_000_000), false);
  t.end();
});
