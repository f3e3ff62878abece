import t from "tap";
import { Reader, wireBytes, wireFixed64, wireVarint } from "../../schema/protobuf/wire.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { encodeMetricPage } from "./protobuf-page.ts";

type Fields = readonly (readonly [field: number, value: number | Buffer])[];

function readFields(bytes: Buffer): Fields {
  const reader = new Reader(bytes);
  const fields: [number, number | Buffer][] = [];
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    const type = tag & 7;
    if (type === wireVarint) fields.push([tag >>> 3, reader.int64()]);
    else if (type === wireFixed64) fields.push([tag >>> 3, reader.double()]);
    else if (type === wireBytes) fields.push([tag >>> 3, reader.bytes(reader.end)]);
    else throw new Error(`wire type ${type}`);
  }
  return fields;
}

const all = (fields: Fields, number: number) => fields.filter(([field]) => field === number).map(([, value]) => value);
const first = (fields: Fields, number: number) => all(fields, number)[0];
const messages = (fields: Fields, number: number) => all(fields, number).map((value) => readFields(value as Buffer));

function readFamilies(bytes: Buffer): readonly Fields[] {
  const reader = new Reader(bytes);
  const families: Fields[] = [];
  while (reader.position < reader.end) families.push(readFields(reader.bytes(reader.end)));
  return families;
}

t.test("encodeMetricPage() encodes counters, gauges and histograms", async (t) => {
  const registry = new MetricRegistry();
  registry
    .counter({ name: "a_total", help: 'A\\ "quoted"\nhelp.', labels: ["x", "y"] })
    .with('1"\\\n', "2")
    .inc(1.5);
  registry.gauge({ name: "b", help: "B." }).with().set(Number.POSITIVE_INFINITY);
  const histogram = registry.histogram({ name: "c_seconds", help: "C.", labels: ["op"] }, [0.5, 1]);
  for (const value of [0.1, 0.7, 3]) histogram.with("get").observe(value);
  histogram.with("put").observe(0.6);
  const text = `${formatMetrics([registry], "prometheus")}# HELP d D.\n# TYPE d gauge\nd{l="m"} -2 1700000000123\n`;
  const [a = [], b = [], c = [], d = [], ...more] = readFamilies(encodeMetricPage(text));
  t.same(more, []);
  t.same(
    [a, b, c, d].map((family) => [String(first(family, 1)), String(first(family, 2)), first(family, 3)]),
    [
      ["a_total", 'A\\ "quoted"\nhelp.', 0],
      ["b", "B.", 1],
      ["c_seconds", "C.", 4],
      ["d", "D.", 1],
    ],
  );
  const [counter = []] = messages(a, 4);
  t.same(
    messages(counter, 1).map((label) => label.map(([, value]) => String(value))),
    [
      ["x", '1"\\\n'],
      ["y", "2"],
    ],
  );
  t.same(messages(counter, 3), [[[1, 1.5]]]);
  t.same(messages(messages(b, 4)[0] ?? [], 2), [[[1, Number.POSITIVE_INFINITY]]]);
  const series = messages(c, 4).map((metric) => messages(metric, 7)[0] ?? []);
  t.same(
    series.map((each) => [first(each, 1), Number(first(each, 2)).toFixed(1)]),
    [
      [3, "3.8"],
      [1, "0.6"],
    ],
  );
  t.same(
    series.map((each) => messages(each, 3).map((bucket) => [first(bucket, 2), first(bucket, 1)])),
    [
      [
        [0.5, 1],
        [1, 2],
      ],
      [
        [0.5, 0],
        [1, 1],
      ],
    ],
  );
  const [timed = []] = messages(d, 4);
  t.equal(first(timed, 6), 1700000000123);
  t.same(messages(timed, 2), [[[1, -2]]]);
});
