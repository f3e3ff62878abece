import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { RequestMemory, reserveMemory } from "./request-memory.ts";

const KIB = 1024;

function setUp() {
  const clock = new FakeClock();
  const memory = new RequestMemory({ clock, bytes: 200 * KIB });
  /** Starts a request with a body of so many KiB. */
  const start = (kib: number) => {
    const request = makeRequest({ method: "POST", path: "/" });
    const end = Promise.withResolvers<void>();
    const state = { value: "waiting" };
    const result = memory.run(request, async () => {
      await reserveMemory(request, kib * KIB);
      state.value = "handled";
      await end.promise;
    });
    result.catch((error) => {
      state.value = String(error.status?.code);
    });
    const finish = async (): Promise<void> => {
      end.resolve();
      await result;
    };
    return { state, end: finish };
  };
  return { clock, start };
}

t.test("RequestMemory lets large requests take turns in order", async (t) => {
  const { clock, start } = setUp();
  const all = [150, 100, 20, 50, 100].map(start);
  const states = async (): Promise<string[]> => {
    await clock.advance(0);
    return all.map(({ state }) => state.value);
  };
  t.same(await states(), ["handled", "waiting", "handled", "waiting", "waiting"], "small ones are not counted");
  await all[0]!.end();
  t.same(await states(), ["handled", "handled", "handled", "handled", "waiting"]);
  await all[1]!.end();
  await all[3]!.end();
  t.same(await states(), ["handled", "handled", "handled", "handled", "handled"]);
  for (const { end } of all) await end();
  const alone = start(1000);
  await clock.advance(0);
  t.equal(alone.state.value, "handled", "a larger one is handled alone");
  await alone.end();
  t.equal(clock.pending, 0);
});

t.test("RequestMemory refuses requests that wait too long or for which the queue has no capacity", async (t) => {
  const { clock, start } = setUp();
  const first = start(200);
  const waiting = Array.from({ length: 9 }, () => start(200));
  await clock.advance(0);
  t.same(
    waiting.map(({ state }) => state.value),
    [...Array(8).fill("waiting"), "429"],
  );
  await clock.advance(10_000);
  t.ok(waiting.every(({ state }) => state.value === "429"));
  await first.end();
  const next = start(200);
  await clock.advance(0);
  t.equal(next.state.value, "handled");
  await next.end();
  t.equal(clock.pending, 0);
});
