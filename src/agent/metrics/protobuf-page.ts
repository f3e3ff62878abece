/**
 * Prometheus' protobuf format: messages `io.prometheus.client.MetricFamily` of
 * github.com/prometheus/client_model, each with its length before it. Pages are rendered as text, which nearly every
 * scraper requests, and converted for the others.
 */
import { ReverseWriter, tagOf, wireBytes, wireFixed64, wireVarint } from "../../schema/protobuf/wire.ts";

type Labels = readonly (readonly [name: string, value: string])[];

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
  /** Milliseconds since 1970. */
  readonly time: number | undefined;
}

interface TextFamily {
  readonly name: string;
  help: string;
  type: string;
  readonly samples: Sample[];
}

/** `MetricType`, and the field of `Metric` that has the value. */
const TYPES: Readonly<Record<string, readonly [type: number, field: number]>> = {
  counter: [0, 3],
  gauge: [1, 2],
  untyped: [3, 5],
};
const HISTOGRAM = 4;

/** Encodes a page in Prometheus' text format, as this agent writes it. */
export function encodeMetricPage(text: string): Buffer {
  const writer = new ReverseWriter();
  for (const family of parsePage(text).toReversed()) writeFamily(writer, family);
  return writer.take();
}

const COMMENT = /^# (HELP|TYPE) (\S+) (.*)$/;
const SAMPLE = /^(\w+)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

function parsePage(text: string): readonly TextFamily[] {
  const families: TextFamily[] = [];
  let family: TextFamily | undefined;
  for (const line of text.split("\n")) {
    const [, keyword, commented = "", rest = ""] = COMMENT.exec(line) ?? [];
    if (keyword !== undefined) {
      if (family?.name !== commented) {
        family = { name: commented, help: "", type: "untyped", samples: [] };
        families.push(family);
      }
      if (keyword === "HELP") family.help = unescapeText(rest);
      else family.type = rest;
      continue;
    }
    const [, name, labels = "", value = "", time] = SAMPLE.exec(line) ?? [];
    if (name === undefined) continue;
    family?.samples.push({
      name,
      labels: [...labels.matchAll(LABEL)].map(([, label = "", quoted = ""]) => [label, unescapeText(quoted)]),
      value: parseValue(value),
      time: time === undefined ? undefined : Number(time),
    });
  }
  return families;
}

function parseValue(text: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  return text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text);
}

function unescapeText(text: string): string {
  return text.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
}

/** Fields in descending order, since the writer writes backwards. */
function writeFamily(writer: ReverseWriter, { name, help, type, samples }: TextFamily): void {
  const began = writer.length;
  if (type === "histogram") writeHistograms(writer, name, samples);
  else {
    const [, field = 5] = TYPES[type] ?? [];
    for (const sample of samples.toReversed()) {
      writeMessage(writer, 4, () => {
        writeTime(writer, sample.time);
        writeMessage(writer, field, () => writeDouble(writer, 1, sample.value));
        writeLabels(writer, sample.labels);
      });
    }
  }
  writeNumber(writer, 3, type === "histogram" ? HISTOGRAM : (TYPES[type]?.[0] ?? 3));
  writeString(writer, 2, help);
  writeString(writer, 1, name);
  writer.uint32(writer.length - began);
}

/** The samples of one series follow each other: its buckets, `_sum` and `_count`. */
function writeHistograms(writer: ReverseWriter, name: string, samples: readonly Sample[]): void {
  const series: Sample[][] = [[]];
  for (const sample of samples) {
    series.at(-1)?.push(sample);
    if (sample.name === `${name}_count`) series.push([]);
  }
  for (const own of series.toReversed()) {
    const count = own.find((sample) => sample.name === `${name}_count`);
    if (count === undefined) continue;
    const sum = own.find((sample) => sample.name === `${name}_sum`);
    writeMessage(writer, 4, () => {
      writeTime(writer, count.time);
      writeMessage(writer, 7, () => {
        for (const { labels, value } of own.toReversed()) {
          const le = labels.find(([label]) => label === "le")?.[1];
          // The bucket without bound is the count.
          if (le === undefined || le === "+Inf") continue;
          writeMessage(writer, 3, () => {
            writeDouble(writer, 2, Number(le));
            writeNumber(writer, 1, value);
          });
        }
        writeDouble(writer, 2, sum?.value ?? 0);
        writeNumber(writer, 1, count.value);
      });
      writeLabels(writer, count.labels);
    });
  }
}

function writeLabels(writer: ReverseWriter, labels: Labels): void {
  for (const [name, value] of labels.toReversed()) {
    writeMessage(writer, 1, () => {
      writeString(writer, 2, value);
      writeString(writer, 1, name);
    });
  }
}

function writeTime(writer: ReverseWriter, time: number | undefined): void {
  if (time !== undefined) writeNumber(writer, 6, time);
}

function writeMessage(writer: ReverseWriter, field: number, write: () => void): void {
  const began = writer.length;
  write();
  writer.uint32(writer.length - began);
  writer.uint32(tagOf(field, wireBytes));
}

function writeNumber(writer: ReverseWriter, field: number, value: number): void {
  writer.int64(Math.round(value));
  writer.uint32(tagOf(field, wireVarint));
}

function writeDouble(writer: ReverseWriter, field: number, value: number): void {
  writer.double(value);
  writer.uint32(tagOf(field, wireFixed64));
}

function writeString(writer: ReverseWriter, field: number, value: string): void {
  writer.string(value);
  writer.uint32(tagOf(field, wireBytes));
}
