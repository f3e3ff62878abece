import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { type Span, Trace } from "../../tracing/span.ts";
import { callSpan, traceMetadata } from "./trace-call.ts";

t.test("callSpan() describes the method of a call", async (t) => {
  t.match(callSpan("/etcdserverpb.KV/Range"), {
    name: "etcdserverpb.KV/Range",
    kind: "client",
    attributes: { "rpc.system": "grpc", "rpc.service": "etcdserverpb.KV", "rpc.method": "Range" },
  });
});

t.test("traceMetadata() has the context of the current span, if there is one", async (t) => {
  t.same(traceMetadata().getMap(), {});
  const sink = { add: (_span: Span) => {} };
  const trace = new Trace({ clock: new FakeClock(), export: { sink, random: seededRandom(1), ratio: 1 } });
  void trace.start({ name: "a" }).run(() => {
    t.match(traceMetadata().getMap(), { traceparent: new RegExp(`^00-${trace.traceId}-[0-9a-f]{16}-0[01]$`) });
  });
});
