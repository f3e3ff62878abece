import t from "tap";
import { formatTraceContext, parseTraceContext } from "./trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

t.test("parseTraceContext() reads valid headers, also of later versions", async (t) => {
  const plain = { traceId: TRACE, spanId: SPAN, sampled: true, traceState: "", baggage: "" };
  t.same(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01` }), plain);
  t.same(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-02` }), { ...plain, sampled: false });
  t.same(parseTraceContext({ traceparent: `01-${TRACE}-${SPAN}-01-more` }), plain);
  t.same(parseTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "a=1, b@c=2", baggage: "k=v" }), {
    ...plain,
    traceState: "a=1,b@c=2",
    baggage: "k=v",
  });
});

t.test("parseTraceContext() ignores invalid headers", async (t) => {
  const invalid = [
    "",
    "00",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
    "x".repeat(100_000),
  ];
  for (const traceparent of invalid) t.equal(parseTraceContext({ traceparent }), undefined, traceparent.slice(0, 80));
  t.equal(parseTraceContext({}), undefined);
  const traceparent = `00-${TRACE}-${SPAN}-01`;
  const many = Array.from({ length: 33 }, (_, index) => `k${index}=v`).join(",");
  for (const tracestate of ["no-value", "A=1", "a=1,a=2", many, `a=${"x".repeat(20_000)}`]) {
    t.equal(parseTraceContext({ traceparent, tracestate })?.traceState, "", tracestate.slice(0, 40));
  }
  t.equal(parseTraceContext({ traceparent, baggage: "x".repeat(8193) })?.baggage, "");
  t.equal(parseTraceContext({ traceparent, baggage: "a\nb" })?.baggage, "");
});

t.test("formatTraceContext() writes the headers that parseTraceContext() reads", async (t) => {
  const context = { traceId: TRACE, spanId: SPAN, sampled: false, traceState: "a=1", baggage: "k=v" };
  t.same(parseTraceContext(formatTraceContext(context)), context);
  const { traceparent, ...more } = formatTraceContext({ ...context, traceState: "", baggage: "" });
  t.equal(traceparent, `00-${TRACE}-${SPAN}-00`);
  t.same(more, {});
});
