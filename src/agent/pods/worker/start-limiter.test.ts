import t from "tap";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { isCpuBusy, StartLimiter } from "./start-limiter.ts";

interface Machine extends Disposable {
  readonly clock: FakeClock;
  isBusy: boolean;
  /** Names in the order in which their turn came, and how each ends. */
  readonly begun: Map<string, Disposable>;
  begin(name: string, priority?: number, signal?: AbortSignal): Promise<void>;
  begunNames(): Promise<string>;
}

function machine(least = 2): Machine {
  const clock = new FakeClock();
  const begun = new Map<string, Disposable>();
  const never = new AbortController();
  const turns = new StartLimiter({ clock, minConcurrent: least, isBusy: () => at.isBusy });
  const at: Machine = {
    clock,
    isBusy: true,
    begun,
    async begin(name, priority = 0, signal = never.signal) {
      begun.set(name, await turns.acquire(priority, signal));
    },
    async begunNames() {
      await clock.advance(0);
      return [...begun.keys()].join("");
    },
    [Symbol.dispose]: () => turns[Symbol.dispose](),
  };
  return at;
}

t.test("StartLimiter starts pods on busy CPUs one after the other, in the order of their requests", async (t) => {
  using at = machine();
  for (const name of "abcd") void at.begin(name);
  t.equal(await at.begunNames(), "ab");
  at.begun.get("b")?.[Symbol.dispose]();
  t.equal(await at.begunNames(), "abc");
  at.begun.get("b")?.[Symbol.dispose]();
  t.equal(await at.begunNames(), "abc", "a turn ends once");
  at.begun.get("a")?.[Symbol.dispose]();
  t.equal(await at.begunNames(), "abcd");
});

t.test("StartLimiter starts pods of higher priority first", async (t) => {
  using at = machine(1);
  for (const [name, priority] of Object.entries({ a: 0, b: 0, c: 1000, d: 0 })) void at.begin(name, priority);
  t.equal(await at.begunNames(), "a");
  for (const name of "acb") {
    at.begun.get(name)?.[Symbol.dispose]();
    await at.begunNames();
  }
  t.equal(await at.begunNames(), "acbd");
});

t.test("StartLimiter starts further pods while the CPUs are idle", async (t) => {
  using at = machine();
  at.isBusy = false;
  for (const name of "abcdef") void at.begin(name);
  t.equal(await at.begunNames(), "ab", "whether more is too much shows a moment later");
  await at.clock.advance(20);
  t.equal(await at.begunNames(), "abc");
  at.isBusy = true;
  await at.clock.advance(100);
  t.equal(await at.begunNames(), "abc");
  at.isBusy = false;
  await at.clock.advance(40);
  t.equal(await at.begunNames(), "abcde");
  at.isBusy = true;
  await at.clock.advance(100);
  t.equal(await at.begunNames(), "abcde");
});

t.test("StartLimiter releases the slot of a pod that hangs", async (t) => {
  using at = machine();
  for (const name of "abcdef") void at.begin(name);
  await at.clock.advance(499);
  t.equal(await at.begunNames(), "ab");
  await at.clock.advance(1);
  t.equal(await at.begunNames(), "abcd");
  await at.clock.advance(500);
  t.equal(await at.begunNames(), "abcdef");
});

t.test("StartLimiter removes a waiting pod whose signal aborts", async (t) => {
  using at = machine(1);
  const stop = new AbortController();
  void at.begin("a");
  const gone = at.begin("b", 0, stop.signal);
  void at.begin("c");
  stop.abort(new Error("deleted"));
  await t.rejects(gone, { message: "deleted" });
  await t.rejects(at.begin("d", 0, stop.signal), { message: "deleted" });
  at.begun.get("a")?.[Symbol.dispose]();
  t.equal(await at.begunNames(), "ac");
  at.begun.get("c")?.[Symbol.dispose]();
  await at.clock.advance(1_000);
  t.equal(at.clock.pending, 0, "no timer is left when nobody waits");
});

t.test("isCpuBusy() compares the runnable threads with the CPUs", (t) => {
  t.equal(isCpuBusy(0), true, "this test runs");
  t.equal(isCpuBusy(1_000_000), false);
  t.end();
});
