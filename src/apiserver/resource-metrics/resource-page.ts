/** Reads an agent's `/metrics/resource`: Prometheus' text format, within bounds. */

/** CPU time and memory of a node or container at one time. */
export interface UsageSample {
  /** By the agent's clock: milliseconds since 1970. */
  readonly timeMs: number;
  /** Since the start of the container or node. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /** 0 for a node. */
  readonly startMs: number;
}

export interface ResourceReading {
  /** Undefined when the page has no complete sample of the node. */
  readonly node: UsageSample | undefined;
  /** By `namespace/name`, then by container. Pods with an incomplete sample of a container are absent. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, UsageSample>>;
}

/** A page of 500 pods with 10 containers each has about 4 MiB. */
export const PAGE_BYTES_MAX = 16 * 2 ** 20;
const LINE_BYTES_MAX = 8 * 2 ** 10;
/** Ten for each container. */
const LINES_MAX = 200_000;
const CONTAINERS_MAX = 20_000;
/** The longest name of a namespace, pod or container. */
const NAME_CHARS_MAX = 253;
/** The last time that JavaScript's Date can represent. */
const TIME_MS_MAX = 8.64e15;
const NEWLINE = 10;

type Figure = "cpuSeconds" | "memoryBytes" | "startMs";

/** Samples that are read. Others of the page are skipped. */
const figures: ReadonlyMap<string, readonly [scope: "container" | "node", figure: Figure]> = new Map([
  ["node_cpu_usage_seconds_total", ["node", "cpuSeconds"]],
  ["node_memory_working_set_bytes", ["node", "memoryBytes"]],
  ["container_cpu_usage_seconds_total", ["container", "cpuSeconds"]],
  ["container_memory_working_set_bytes", ["container", "memoryBytes"]],
  ["container_start_time_seconds", ["container", "startMs"]],
]);

type PartialSample = { -readonly [K in keyof UsageSample]?: UsageSample[K] };

/** Throws when the page exceeds the bounds or has no samples. Samples without a time get `receivedMs`. */
export async function readResourcePage(body: AsyncIterable<Uint8Array>, receivedMs: number): Promise<ResourceReading> {
  const page = new PageReader(receivedMs);
  let bytes = 0;
  let lines = 0;
  let rest: Uint8Array = Buffer.alloc(0);
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > PAGE_BYTES_MAX) throw new Error(`the response has more than ${PAGE_BYTES_MAX} bytes`);
    const buffer = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = buffer.indexOf(NEWLINE); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
      if (++lines > LINES_MAX) throw new Error(`the response has more than ${LINES_MAX} lines`);
      page.addLine(buffer, start, end);
      start = end + 1;
    }
    rest = buffer.subarray(start);
    if (rest.length > LINE_BYTES_MAX) throw new Error(`the response has a line of more than ${LINE_BYTES_MAX} bytes`);
  }
  page.addLine(Buffer.from(rest), 0, rest.length);
  return page.finish();
}

/** `name{labels} value time`; braces and time are optional. */
const SAMPLE = /^(\w+)(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+))?\s*$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

class PageReader {
  readonly #receivedMs: number;
  readonly #node: PartialSample = {};
  readonly #pods = new Map<string, Map<string, PartialSample>>();
  #containers = 0;

  constructor(receivedMs: number) {
    this.#receivedMs = receivedMs;
  }

  addLine(buffer: Buffer, start: number, end: number): void {
    if (end - start > LINE_BYTES_MAX) {
      throw new Error(`the response has a line of more than ${LINE_BYTES_MAX} bytes`);
    }
    // Only lines of `container_…` and `node_…` are decoded, each by itself: names do not keep the page in memory.
    const first = buffer[start];
    if (first !== 0x63 && first !== 0x6e) return;
    const [, name = "", labels = "", number = "", time] = SAMPLE.exec(buffer.toString("utf8", start, end)) ?? [];
    const row = figures.get(name);
    if (row === undefined) return;
    const value = Number(number);
    const timeMs = time === undefined ? this.#receivedMs : Number(time);
    if (!Number.isFinite(value) || value < 0 || !(timeMs > 0 && timeMs < TIME_MS_MAX)) return;
    const [scope, figure] = row;
    const sample = scope === "node" ? this.#node : this.#container(labels);
    if (sample === undefined) return;
    sample[figure] = figure === "startMs" ? value * 1000 : value;
    // The rate is computed from CPU time, whose sample therefore has the time that counts.
    if (figure === "cpuSeconds") sample.timeMs = timeMs;
  }

  finish(): ResourceReading {
    const pods = new Map<string, ReadonlyMap<string, UsageSample>>();
    for (const [pod, partial] of this.#pods) {
      const containers = [...partial].map(([name, sample]) => [name, completeSample(sample)] as const);
      const complete = containers.flatMap(([name, sample]) => (sample === undefined ? [] : [[name, sample] as const]));
      if (complete.length === containers.length) pods.set(pod, new Map(complete));
    }
    const node = completeSample(this.#node);
    if (node === undefined && pods.size === 0) throw new Error("the response has no resource metrics");
    return { node, pods };
  }

  /** Undefined when a label is missing or too long. */
  #container(labels: string): PartialSample | undefined {
    const found: Record<string, string> = {};
    for (const [, label = "", value = ""] of labels.matchAll(LABEL)) found[label] = value;
    const { namespace = "", pod = "", container = "" } = found;
    const names = [namespace, pod, container];
    if (names.some((name) => name === "" || name.length > NAME_CHARS_MAX)) return undefined;
    const key = `${namespace}/${pod}`;
    const containers = this.#pods.get(key) ?? new Map<string, PartialSample>();
    this.#pods.set(key, containers);
    const known = containers.get(container);
    if (known !== undefined) return known;
    if (++this.#containers > CONTAINERS_MAX) throw new Error(`the response has more than ${CONTAINERS_MAX} containers`);
    const sample: PartialSample = {};
    containers.set(container, sample);
    return sample;
  }
}

/** Undefined without CPU time or memory, as of a container that has just started: metrics-server drops it as well. */
function completeSample({ timeMs, cpuSeconds, memoryBytes, startMs = 0 }: PartialSample): UsageSample | undefined {
  if (timeMs === undefined || !cpuSeconds || !memoryBytes) return undefined;
  return { timeMs, cpuSeconds, memoryBytes, startMs };
}
