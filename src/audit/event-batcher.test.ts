import t from "tap";
import { FakeClock } from "../testing/std/fake-clock.ts";
import type { AuditEvent } from "./event.ts";
import { type BatchOptions, EventBatcher } from "./event-batcher.ts";

function event(auditId: string): AuditEvent {
  return {
    level: "Metadata",
    auditId,
    stage: "ResponseComplete",
    requestUri: "/",
    verb: "get",
    user: undefined,
    sourceIps: [],
    userAgent: "",
    receivedAt: 0,
    stageAt: 0,
    annotations: new Map(),
  };
}

function start(more: Partial<BatchOptions & { readonly parallel: number }> = {}) {
  const clock = new FakeClock();
  const sent: string[] = [];
  const held: (() => void)[] = [];
  const state = { isSlow: false };
  const options = { bufferSize: 100, maxSize: 3, maxWaitMs: 1000, throttle: undefined, parallel: 1, ...more };
  const batcher = new EventBatcher(options, clock, async (events) => {
    sent.push(events.map(({ auditId }) => auditId).join(""));
    if (state.isSlow) await new Promise<void>((resolve) => held.push(resolve));
  });
  const add = (ids: string): readonly boolean[] => [...ids].map((id) => batcher.add(event(id)));
  return { clock, sent, held, state, batcher, add };
}

t.test("a full batch is sent at once, others after the wait", async (t) => {
  const { clock, sent, add, batcher } = start();
  add("abcd");
  await clock.advance(0);
  t.same(sent, ["abc"]);
  await clock.advance(999);
  t.same(sent, ["abc"]);
  await clock.advance(1);
  t.same(sent, ["abc", "d"]);
  await batcher[Symbol.asyncDispose]();
  t.equal(clock.pending, 0);
});

t.test("the first batch is sent at once, what comes shortly after it together", async (t) => {
  const { clock, sent, add, batcher } = start({ maxSize: 100, maxWaitMs: 0, pauseMs: 5 });
  add("a");
  add("bc");
  await clock.advance(4);
  t.same(sent, ["a"]);
  add("d");
  await clock.advance(1);
  t.same(sent, ["a", "bcd"]);
  add("e");
  await batcher[Symbol.asyncDispose]();
  t.same(sent, ["a", "bcd", "e"]);
  t.equal(clock.pending, 0);
});

t.test("events beyond the buffer are refused", async (t) => {
  const { add, batcher, sent } = start({ bufferSize: 2 });
  t.same(add("abc"), [true, true, false]);
  await batcher[Symbol.asyncDispose]();
  t.same(sent, ["ab"]);
});

t.test("batches wait for a slow receiver, up to the allowed number at a time", async (t) => {
  const { clock, sent, held, state, add, batcher } = start({ maxSize: 1, parallel: 2 });
  state.isSlow = true;
  add("abcd");
  await clock.advance(0);
  t.same(sent, ["a", "b"]);
  held.shift()?.();
  await clock.advance(0);
  t.same(sent, ["a", "b", "c"]);
  state.isSlow = false;
  for (const end of held) end();
  await batcher[Symbol.asyncDispose]();
  t.same(sent, ["a", "b", "c", "d"]);
});

t.test("the rate is limited, but not when the server stops", async (t) => {
  const { clock, sent, add, batcher } = start({ maxSize: 1, throttle: { qps: 1, burst: 2 } });
  add("abcdef");
  await clock.advance(0);
  t.same(sent, ["a", "b"]);
  await clock.advance(1000);
  t.same(sent, ["a", "b", "c"]);
  await batcher[Symbol.asyncDispose]();
  t.same(sent, [..."abcdef"]);
});
