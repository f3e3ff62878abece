/** Run by `make bench`: the CPU time of the spans of a write, off and on in one run. */
import { seededRandom } from "../std/crypto/random.ts";
import { systemClock as clock } from "../std/time/clock.ts";
import { encodeRequest, encodeSpan } from "./otlp/encode.ts";
import { addEvent, inSpan, SLOW_MS, type Span, Trace, type TraceOptions } from "./span.ts";

const CALLS = 100_000;
const BATCH = 512;

const attributes = () => ({ key: "/registry/pods/default/web", type: "*core.Pod", group: "", resource: "pods" });

/** The spans and steps of a create. */
async function write(): Promise<void> {
  addEvent("limitedReadBody succeeded", { len: 1000 });
  addEvent("About to convert to expected version");
  addEvent("Conversion done");
  await inSpan("Create etcd3", attributes, async () => {
    addEvent("About to Encode");
    addEvent("Encode succeeded", { len: 1000 });
    await Promise.resolve();
    addEvent("Txn call succeeded");
  });
  addEvent("Write to database call succeeded");
}

let batch: ReturnType<typeof encodeSpan>[] = [];
/** Encodes spans as the batcher does, without a collector. */
const sink = {
  add(span: Span): void {
    batch.push(encodeSpan(span));
    if (batch.length < BATCH) return;
    encodeRequest({}, batch);
    batch = [];
  },
};
const random = seededRandom(1);

const traced = (options: Partial<TraceOptions>) => async () =>
  await new Trace({ clock, ...options }).start({ name: "Create", attributes }, SLOW_MS).run(write);

await measure("without a trace", write);
await measure("log of slow requests", traced({ onSlow: () => {} }));
await measure("exported, not sampled", traced({ export: { sink, random, ratio: 0 } }));
await measure("exported, sampled", traced({ export: { sink, random, ratio: 1 } }));

/** The best of five rounds, after a warm-up. */
async function measure(what: string, work: () => Promise<void>): Promise<void> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await work();
    const { user, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (user + system) / CALLS);
  }
  const figures = { bench: "tracing", what, cpuMicroseconds: Number(best.toFixed(2)) };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
