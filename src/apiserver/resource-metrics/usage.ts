/**
 * The usage of nodes and containers between two samples of their agent, as metrics-server computes it. A sample that is
 * not later than the one before replaces it; a container that was restarted has no earlier sample.
 */
import type { ResourceUsage } from "../../api/metrics/schema.ts";
import { formatQuantity } from "../../schema/value/quantity.ts";
import { formatDuration } from "../../schema/value/time.ts";
import type { ResourceReading, UsageSample } from "./resource-page.ts";

/** Two consecutive samples. */
interface SamplePair {
  readonly last: UsageSample;
  readonly previous: UsageSample | undefined;
}

export interface NodeSamples {
  readonly node: SamplePair | undefined;
  /** By `namespace/name`, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, SamplePair>>;
}

export interface Usage {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly windowMs: number;
  readonly usage: ResourceUsage;
}

export interface PodUsage extends Pick<Usage, "timeMs" | "windowMs"> {
  readonly containers: readonly { readonly name: string; readonly usage: ResourceUsage }[];
}

/** The age from which the start of a container replaces its missing earlier sample, until it has one. */
const FRESH_CONTAINER_MS_MIN = 10_000;
const FRESH_CONTAINER_MS_MAX = 15_000;

/** The samples after another reading. What the reading lacks is dropped. */
export function addReading(before: NodeSamples | undefined, { node, pods }: ResourceReading): NodeSamples {
  const pairs = new Map<string, ReadonlyMap<string, SamplePair>>();
  for (const [pod, containers] of pods) {
    const earlier = before?.pods.get(pod);
    pairs.set(pod, new Map([...containers].map(([name, sample]) => [name, pairContainer(earlier?.get(name), sample)])));
  }
  return { node: node === undefined ? undefined : pair(before?.node, node), pods: pairs };
}

function pairContainer(before: SamplePair | undefined, last: UsageSample): SamplePair {
  const ageMs = last.timeMs - last.startMs;
  if (last.startMs > 0 && ageMs >= FRESH_CONTAINER_MS_MIN && ageMs < FRESH_CONTAINER_MS_MAX) {
    return { last, previous: { ...last, timeMs: last.startMs, cpuSeconds: 0 } };
  }
  return pair(before, last);
}

function pair(before: SamplePair | undefined, last: UsageSample): SamplePair {
  const candidate = before !== undefined && last.timeMs > before.last.timeMs ? before.last : before?.previous;
  const isUsable = candidate !== undefined && last.startMs < candidate.timeMs && candidate.timeMs < last.timeMs;
  return { last, previous: isUsable ? candidate : undefined };
}

/** Undefined before there are two samples, or when CPU time has decreased, as after a restart of the node. */
export function computeUsage(samples: SamplePair | undefined): Usage | undefined {
  if (samples?.previous === undefined) return undefined;
  const { last, previous } = samples;
  const windowMs = last.timeMs - previous.timeMs;
  const cpuSeconds = last.cpuSeconds - previous.cpuSeconds;
  if (cpuSeconds < 0 || windowMs <= 0) return undefined;
  const cpuNanos = BigInt(Math.floor((cpuSeconds / windowMs) * 1e12));
  const memoryNanos = BigInt(Math.floor(last.memoryBytes)) * 1_000_000_000n;
  const usage = {
    cpu: formatQuantity({ nanos: cpuNanos, format: "DecimalSI" }),
    memory: formatQuantity({ nanos: memoryNanos, format: "BinarySI" }),
  };
  return { timeMs: last.timeMs, windowMs, usage };
}

/** Undefined until every container has two samples. The time and window are those of the oldest sample. */
export function computePodUsage(containers: ReadonlyMap<string, SamplePair> | undefined): PodUsage | undefined {
  const usages: { readonly name: string; readonly usage: ResourceUsage }[] = [];
  let oldest: Usage | undefined;
  for (const [name, samples] of containers ?? []) {
    if (samples.previous === undefined) return undefined;
    const usage = computeUsage(samples);
    if (usage === undefined) continue;
    usages.push({ name, usage: usage.usage });
    if (oldest === undefined || usage.timeMs < oldest.timeMs) oldest = usage;
  }
  if (oldest === undefined) return undefined;
  return { timeMs: oldest.timeMs, windowMs: oldest.windowMs, containers: usages };
}

/** `15.032s` */
export function formatWindow(windowMs: number): string {
  return formatDuration(BigInt(Math.round(windowMs)) * 1_000_000n);
}
