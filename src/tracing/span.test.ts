import t from "tap";
import { seededRandom } from "../std/crypto/random.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import {
  addEvent,
  currentSpan,
  inClientSpan,
  inExportedSpan,
  inSpan,
  SLOW_MS,
  type Span,
  Trace,
  traceHeaders,
} from "./span.ts";

const remote = {
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: "00f067aa0ba902b7",
  sampled: true,
  traceState: "a=1",
  baggage: "k=v",
};

function setUp(ratio: number | undefined, from?: typeof remote) {
  const exported: Span[] = [];
  const sink = { add: (span: Span) => void exported.push(span) };
  const exporting = ratio === undefined ? undefined : { sink, random: seededRandom(1), ratio };
  const trace = new Trace({ clock: new FakeClock(), export: exporting, remote: from });
  return { trace, exported };
}

t.test("without a trace nothing is recorded, and work runs synchronously", async (t) => {
  t.equal(currentSpan(), undefined);
  addEvent("nothing");
  t.equal(
    inSpan("a", {}, () => 1),
    1,
  );
  t.equal(
    inExportedSpan({ name: "a" }, () => 1),
    1,
  );
  t.same(traceHeaders(), {});
});

t.test("spans nest along asynchronous calls and are exported when they end", async (t) => {
  const { trace, exported } = setUp(1);
  await trace.start({ name: "server", kind: "server" }).run(async () => {
    await inSpan("inner", { a: 1 }, async () => {
      await Promise.resolve();
      addEvent("step", { b: true });
    });
    t.throws(
      () =>
        inExportedSpan({ name: "failing" }, () => {
          throw new Error("no");
        }),
      { message: "no" },
    );
    await t.rejects(async () => await inSpan("rejecting", {}, () => Promise.reject(new Error("late"))));
    await inClientSpan("POST", "https://a/", async (headers) => {
      t.match(headers, { traceparent: new RegExp(`^00-${trace.traceId}-${currentSpan()?.id}-0[01]$`) });
      return { status: 404 };
    });
  });
  t.same(
    exported.map(({ name, parent, error, events }) => [name, parent?.name, error, events.map((event) => event.name)]),
    [
      ["inner", "server", undefined, ["step"]],
      ["failing", "server", "no", []],
      ["rejecting", "server", "late", []],
      ["HTTP POST", "server", "", []],
      ["server", undefined, undefined, []],
    ],
  );
  t.equal(new Set(exported.map(({ id }) => id)).size, 5);
});

t.test("a trusted caller's decision is followed, that of others is not", async (t) => {
  const rows = [
    { sampled: true, trusted: true, ratio: 0, exports: true, traceId: remote.traceId },
    { sampled: false, trusted: true, ratio: 1, exports: false },
    { sampled: true, trusted: false, ratio: 0, exports: false },
    { sampled: false, trusted: false, ratio: 1, exports: true },
  ];
  for (const { sampled, trusted, ratio, exports, traceId } of rows) {
    const { trace, exported } = setUp(ratio, { ...remote, sampled });
    void trace.start({ name: "server" }).run(() => {
      void inExportedSpan({ name: "before the decision" }, () => {});
      trace.decide(trusted);
    });
    t.equal(exported.length, exports ? 2 : 0, JSON.stringify({ sampled, trusted, ratio }));
    t.equal(trace.traceId === remote.traceId, trusted);
    if (traceId !== undefined) t.equal(trace.traceId, traceId);
    t.equal(trace.link?.traceId, trusted ? undefined : remote.traceId);
  }
});

t.test("the ratio samples that share of new traces", async (t) => {
  const random = seededRandom(7);
  let sampled = 0;
  for (let index = 0; index < 4000; index++) {
    const sink = { add: () => void sampled++ };
    new Trace({ clock: new FakeClock(), export: { sink, random, ratio: 0.25 } }).start({ name: "a" }).end();
  }
  t.ok(sampled > 850 && sampled < 1150, `${sampled} of 4000`);
});

t.test("without a collector the context of the client is passed on", async (t) => {
  const { trace } = setUp(undefined, remote);
  void trace.start({ name: "Create" }, SLOW_MS).run(() => {
    t.same(traceHeaders(), {
      traceparent: `00-${remote.traceId}-${remote.spanId}-01`,
      tracestate: "a=1",
      baggage: "k=v",
    });
  });
});

t.test("work that outlives its request adds nothing to it", async (t) => {
  const { trace, exported } = setUp(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  let late: Promise<void> | undefined;
  void trace.start({ name: "server" }).run(() => {
    late = promise.then(() => {
      t.equal(currentSpan(), undefined);
      void inSpan("late", {}, () => {});
    });
  });
  resolve();
  await late;
  t.equal(exported.length, 1);
});

t.test("a request has a bounded number of spans and a span of events", async (t) => {
  const { trace, exported } = setUp(1);
  let outer: Span | undefined;
  void trace.start({ name: "server" }, SLOW_MS).run(() => {
    outer = currentSpan();
    for (let index = 0; index < 3000; index++) {
      void inSpan("item", {}, () => {});
      addEvent("step");
    }
  });
  t.equal(exported.length, 1001);
  t.equal(outer?.items.length, 128);
});
