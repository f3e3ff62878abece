import t from "tap";
import { AuditAnnotations } from "../../admission/chain/audit-annotations.ts";
import { makeRequest } from "../../http/request.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { DemandIntegrator } from "./demand-integrator.ts";
import { FlowControlMetrics } from "./flow-control-metrics.ts";
import { type Decision, type FlowRequest, FlowSeats } from "./flow-request.ts";
import { QueueSet } from "./queue-set.ts";
import type { WorkEstimate } from "./work-estimate.ts";

const request = makeRequest({ path: "/version" });
const context = {
  request,
  info: parseRequestInfo(request),
  user: undefined,
  signal: request.signal,
  warnings: [],
  auditId: "",
  annotations: new AuditAnnotations(),
};
const { signal } = new AbortController();
const WAIT_MS = 10_000;

interface Sent {
  readonly request: FlowRequest;
  decision: Decision | undefined;
  readonly decided: Promise<unknown>;
}

class Level {
  readonly clock = new FakeClock();
  readonly registry = new MetricRegistry();
  readonly demand = new DemandIntegrator(0);
  readonly #metrics = new FlowControlMetrics(this.registry, this.clock);
  readonly #flow = this.#metrics.ofFlow("schema", "level");
  readonly #flowSeats = new FlowSeats();
  readonly #levelMetrics = this.#metrics.ofLevel("level");
  readonly set = new QueueSet({ clock: this.clock, metrics: this.#levelMetrics, demand: this.demand });

  constructor(limit: number, queues: number, queueLengthLimit = 10, exempt = false) {
    this.configure(limit, queues, queueLengthLimit, exempt);
  }

  configure(limit: number, queues: number, queueLengthLimit = 10, exempt = false): void {
    this.set.configure({ queues, handSize: 1, queueLengthLimit, exempt }, limit, Math.max(1, limit));
  }

  /** Undefined: rejected at once. */
  send(queue = 0, seats = 1, waitSignal = signal, work = { finalSeats: 0, additionalLatencyMs: 0 }): Sent | undefined {
    return this.sendOf(this.#flowSeats, queue, { initialSeats: seats, ...work }, waitSignal);
  }

  /** Sends a request of a flow. */
  sendOf(
    flowSeats: FlowSeats,
    queue: number,
    estimate: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 },
    waitSignal = signal,
  ): Sent | undefined {
    const sent = this.set.start({ flow: this.#flow, flowSeats, distinguisher: "", context, estimate }, [queue]);
    if (sent === undefined) return undefined;
    if (sent.isExecuting) return { request: sent, decision: "execute", decided: Promise.resolve() };
    const waiting = this.set.wait(sent, WAIT_MS, waitSignal);
    const decided = waiting.then((decision) => {
      result.decision = decision;
    });
    const result: Sent = { request: sent, decision: undefined, decided };
    return result;
  }

  value(name: string): readonly number[] {
    this.#levelMetrics.collect(this.set, this.clock.monotonic());
    const family = this.registry.all().find(({ options }) => options.name === `apiserver_flowcontrol_${name}`);
    return (family?.series() ?? []).map((series) => ("value" in series ? series.value : Number.NaN));
  }
}

/** Runs requests of 100 ms for a while, as many at a time for each flow, and counts those of each. */
async function share(limit: number, flows: readonly (readonly [queue: number, atOnce: number, seats: number])[]) {
  const level = new Level(limit, 8, 1000);
  const done = flows.map(() => 0);
  const run = async (flow: number): Promise<void> => {
    const [queue, , seats] = flows[flow]!;
    while (level.clock.monotonic() < 20_000) {
      const sent = level.send(queue, seats);
      await sent?.decided;
      await level.clock.sleep(100);
      if (sent?.decision !== "execute") continue;
      level.set.finish(sent.request);
      done[flow]!++;
    }
  };
  const running = flows.flatMap(([, atOnce], flow) => Array.from({ length: atOnce }, () => run(flow)));
  await level.clock.advance(40_000);
  await Promise.all(running);
  return done;
}

t.test("QueueSet without queues rejects requests over the limit", async (t) => {
  const level = new Level(2, 0);
  const first = level.send();
  t.equal(first?.decision, "execute");
  t.ok(level.send());
  t.equal(level.send(), undefined);
  level.set.finish(first!.request);
  t.ok(level.send());
  t.equal(level.send(), undefined);
  t.same(level.set.counts, { dispatched: 3, rejected: 2, timedOut: 0, cancelled: 0 });
});

t.test("QueueSet with a limit of zero executes one request at a time without queues, and none with", async (t) => {
  const reject = new Level(0, 0);
  t.ok(reject.send());
  t.equal(reject.send(), undefined);
  const queued = new Level(0, 1, 1).send();
  t.equal(queued?.request.isExecuting, false);
});

t.test("QueueSet does not limit an exempt level", async (t) => {
  const level = new Level(0, 0, 10, true);
  for (let index = 0; index < 50; index++) t.ok(level.send()?.request.isExecuting);
  t.equal(level.set.requestsExecuting, 50);
});

t.test(
  "QueueSet queues requests, rejects those beyond the length of a queue, and executes them in order",
  async (t) => {
    const level = new Level(1, 2, 2);
    const first = level.send()!;
    const waiting = [level.send()!, level.send()!];
    t.equal(level.send(), undefined, "the queue is full");
    const other = level.send(1)!;
    t.same(level.value("current_inqueue_requests"), [3]);
    t.same(level.value("current_executing_requests"), [1]);
    t.same(level.value("rejected_requests_total"), [1]);
    await level.clock.advance(3);
    level.set.finish(first.request);
    await level.clock.advance(0);
    const decisions = [...waiting, other].map(({ decision }) => decision);
    t.same(decisions, [undefined, undefined, "execute"], "the other queue has had nothing yet");
    level.set.finish(other.request);
    await level.clock.advance(0);
    t.equal(waiting[0]!.decision, "execute");
    t.equal(waiting[1]!.decision, undefined);
    t.same(level.value("current_inqueue_requests"), [1]);
  },
);

t.test("QueueSet chooses the queue of the hand with the least work, equal ones by turns", async (t) => {
  const level = new Level(1, 3, 10);
  level.send();
  const chosen: (number | undefined)[] = [];
  for (let index = 0; index < 4; index++) {
    const estimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 };
    const flow = level.set.queues[0]!.executing.first!.flow;
    const sent = level.set.start({ flow, flowSeats: new FlowSeats(), distinguisher: "", context, estimate }, [1, 2]);
    chosen.push(sent?.queue?.index);
  }
  t.same(chosen.toSorted(), [1, 1, 2, 2]);
});

t.test("a waiting request is rejected after its time", async (t) => {
  const level = new Level(1, 1);
  level.send();
  const late = level.send()!;
  await level.clock.advance(WAIT_MS - 1);
  t.equal(late.decision, undefined);
  await level.clock.advance(1);
  t.equal(late.decision, "timeout");
  t.match(level.set.counts, { rejected: 1, timedOut: 1, cancelled: 0 });
  t.equal(level.set.requestsWaiting, 0);
  t.equal(level.clock.pending, 0);
});

t.test("a waiting request leaves its queue when the client disconnects", async (t) => {
  const level = new Level(1, 1);
  const first = level.send()!;
  const leaving = new AbortController();
  const [left, next] = [level.send(0, 1, leaving.signal)!, level.send()!];
  leaving.abort();
  await level.clock.advance(0);
  t.equal(left.decision, "cancel");
  level.set.finish(first.request);
  await level.clock.advance(0);
  t.equal(next.decision, "execute");
  t.match(level.set.counts, { dispatched: 2, timedOut: 0, cancelled: 1 });
  const gone = level.send(0, 1, AbortSignal.abort())!;
  await level.clock.advance(0);
  t.equal(gone.decision, "cancel", "it disconnected before");
});

t.test("flows share the seats evenly, whatever the number of their requests and seats", async (t) => {
  const [one = 0, other = 0] = await share(4, [
    [0, 40, 1],
    [1, 6, 1],
  ]);
  t.ok(Math.abs(one - other) < 0.1 * one, `${one} and ${other}`);
  const [narrow = 0, wide = 0] = await share(4, [
    [0, 20, 1],
    [1, 20, 2],
  ]);
  t.ok(Math.abs(narrow - 2 * wide) < 0.15 * narrow, `${narrow} and ${wide} of two seats`);
});

t.test("a flow that needs less than its part gets all of it at once", async (t) => {
  const [many = 0, few = 0] = await share(4, [
    [0, 40, 1],
    [1, 1, 1],
  ]);
  // One after the other, each waits at most until a request of the other flow ends.
  t.ok(few >= 20_000 / (100 + 100 + 5), `${few}`);
  t.ok(many > 3 * few * 0.9, `${many}`);
});

t.test("a flow with long requests lets another one proceed with the next free seat", async (t) => {
  const level = new Level(3, 2);
  const long = [level.send()!, level.send()!, level.send()!];
  const waiting = [level.send()!, level.send()!, level.send()!];
  await level.clock.advance(5000);
  const other = level.send(1)!;
  level.set.finish(long[0]!.request);
  await level.clock.advance(0);
  t.equal(other.decision, "execute");
  t.equal(waiting[0]!.decision, undefined);
});

t.test("a queue does not become longer than its limit when free seats are too few for the next request", async (t) => {
  const level = new Level(3, 1, 2);
  level.send(0, 2);
  t.ok(level.send(0, 2));
  t.ok(level.send(0, 2));
  t.equal(level.send(0, 2), undefined);
});

t.test("a request that needs more seats than there are executes alone", async (t) => {
  const level = new Level(3, 2);
  const first = level.send()!;
  const wide = level.send(1, 5)!;
  const narrow = level.send(0, 1)!;
  t.equal(wide.decision, undefined);
  t.ok(level.value("request_dispatch_no_accommodation_total")[0]! > 0);
  for (const { request, decision } of [first, narrow]) if (decision === "execute") level.set.finish(request);
  await level.clock.advance(0);
  t.equal(wide.decision, "execute");
  t.equal(level.value("current_executing_seats")[0], 5);
});

t.test("the seats of a write linger for its events", async (t) => {
  const level = new Level(2, 1);
  const write = level.send(0, 1, signal, { finalSeats: 2, additionalLatencyMs: 5 })!;
  const next = level.send()!;
  level.set.finish(write.request);
  await level.clock.advance(4);
  t.equal(next.decision, undefined);
  t.same(level.value("current_executing_seats"), [2]);
  t.same(level.value("current_executing_requests"), [0]);
  await level.clock.advance(1);
  t.equal(next.decision, "execute");
  const more = level.send(0, 1, signal, { finalSeats: 4, additionalLatencyMs: 5 })!;
  level.set.finish(next.request);
  await level.clock.advance(0);
  t.match(more.request.estimate, { finalSeats: 2, additionalLatencyMs: 10 }, "as much work with fewer seats");
  level.set.finish(more.request);
  level.set[Symbol.dispose]();
  t.equal(level.clock.pending, 0);
});

t.test("QueueSet keeps the queues that it does not want any more until they are empty", async (t) => {
  const level = new Level(1, 4);
  const running = level.send(3)!;
  const waiting = level.send(2)!;
  level.configure(1, 1);
  t.equal(level.set.queues.length, 4);
  level.set.finish(running.request);
  await level.clock.advance(0);
  t.equal(waiting.decision, "execute");
  level.set.finish(waiting.request);
  t.equal(level.set.queues.length, 2);
  t.same(
    level.set.queues.map(({ index }) => index),
    [0, 1],
  );
  level.configure(1, 3);
  t.equal(level.set.queues.length, 3);
});

t.test("a higher limit executes waiting requests at once", async (t) => {
  const level = new Level(1, 2);
  level.send();
  const waiting = [level.send()!, level.send(1)!];
  level.configure(3, 2);
  await level.clock.advance(0);
  t.same(
    waiting.map(({ decision }) => decision),
    ["execute", "execute"],
  );
});

t.test("the virtual time is reduced before it is too large for its precision", async (t) => {
  const level = new Level(4, 2);
  for (let index = 0; index < 3; index++) level.send(0);
  level.send(1);
  const waiting = level.send(1)!;
  await level.clock.advance(1);
  t.ok(waiting.request.queue !== undefined);
  const [first] = level.set.queues[0]!.executing;
  for (let step = 0; step < 20 && level.value("epoch_advance_total").length === 0; step++) {
    await level.clock.advance(10_000_000_000);
    level.configure(4, 2);
  }
  t.equal(level.value("epoch_advance_total")[0], 1);
  t.ok(level.set.r < 2 ** 26);
  t.ok(level.set.queues[1]!.nextDispatchR < 0, "what is earlier stays earlier");
  if (first !== undefined) level.set.finish(first);
});

t.test("a flow takes all seats while no other sends requests", async (t) => {
  const level = new Level(8, 4);
  const flow = new FlowSeats();
  const sent = Array.from({ length: 8 }, () => level.sendOf(flow, 0));
  t.ok(sent.every((each) => each?.decision === "execute"));
});

t.test("a flow leaves a quarter of the seats to others that sent requests in the last 15 s", async (t) => {
  const level = new Level(8, 4);
  const busy = new FlowSeats();
  const other = new FlowSeats();
  const first = level.sendOf(other, 1);
  level.set.finish(first!.request);
  const sent = Array.from({ length: 9 }, () => level.sendOf(busy, 0));
  const executing = (): number => sent.filter((each) => each?.request.isExecuting).length;
  t.equal(executing(), 6);
  const lists = [0, 1].map(() => level.sendOf(other, 1));
  t.ok(
    lists.every((each) => each?.decision === "execute"),
    "the other flow does not wait",
  );
  t.equal(level.sendOf(other, 1)?.decision, undefined, "all seats are taken");
  level.set.finish(sent[0]!.request);
  t.equal(executing(), 6, "the seat goes to the third request of the other flow");
  level.set.finish(sent[1]!.request);
  t.equal(executing(), 7, "then the busy flow gets its share again");
});

t.test("a flow takes all seats again 15 s after the last request of another", async (t) => {
  const level = new Level(8, 4);
  const busy = new FlowSeats();
  level.set.finish(level.sendOf(new FlowSeats(), 1)!.request);
  level.set.finish(level.sendOf(busy, 0)!.request);
  await level.clock.advance(15_000);
  const sent = Array.from({ length: 8 }, () => level.sendOf(busy, 0));
  t.ok(sent.every((each) => each?.decision === "execute"));
});

t.test("a flow gets the seats of one request whatever its share is", async (t) => {
  const level = new Level(8, 4);
  const busy = new FlowSeats();
  level.set.finish(level.sendOf(new FlowSeats(), 1)!.request);
  const wide = { initialSeats: 8, finalSeats: 0, additionalLatencyMs: 0 };
  const list = level.sendOf(busy, 0, wide);
  t.equal(list?.decision, "execute");
  const next = level.sendOf(busy, 0, wide);
  t.equal(next?.decision, undefined);
  level.set.finish(list!.request);
  t.equal(next?.request.isExecuting, true);
});
