/** Metrics of pods and containers in the runtime's own families, for `/metrics/cadvisor`. */
import type { Metric } from "../runtime/cri/stats.ts";
import { type Runtime, RuntimeError } from "../runtime/runtime.ts";
import { formatFamily, formatLabels, formatSample } from "./metric-text.ts";

export type MetricsRuntime = Pick<Runtime, "listMetricDescriptors" | "listPodSandboxMetrics">;

/** The text of all families; undefined if the runtime does not implement the calls. */
export async function renderRuntimeMetrics(runtime: MetricsRuntime): Promise<string | undefined> {
  try {
    const [{ descriptors = [] }, { podMetrics = [] }] = await Promise.all([
      runtime.listMetricDescriptors({}),
      runtime.listPodSandboxMetrics({}),
    ]);
    const byName = new Map<string, Metric[]>();
    for (const { metrics = [], containerMetrics = [] } of podMetrics) {
      for (const metric of [...metrics, ...containerMetrics.flatMap((each) => each.metrics ?? [])]) {
        const { name = "" } = metric;
        const same = byName.get(name);
        if (same === undefined) byName.set(name, [metric]);
        else same.push(metric);
      }
    }
    const families = descriptors.map(({ name = "", help = "", labelKeys = [] }) => {
      const metrics = byName.get(name) ?? [];
      const type = metrics[0]?.metricType === "GAUGE" ? "gauge" : "counter";
      return formatFamily(
        { name, type, help },
        metrics.flatMap((metric) => toSample(metric, labelKeys)),
      );
    });
    return families.join("");
  } catch (error) {
    if (error instanceof RuntimeError && error.code === "UNIMPLEMENTED") return undefined;
    throw error;
  }
}

/** None for a metric whose labels are not those of its descriptor. */
function toSample({ name = "", labelValues = [], value, timestamp = 0n }: Metric, keys: readonly string[]): string[] {
  if (labelValues.length !== keys.length) return [];
  const labels = formatLabels(Object.fromEntries(keys.map((key, index) => [key, labelValues[index] ?? ""])));
  const timeMs = timestamp === 0n ? undefined : Number(timestamp / 1_000_000n);
  return [formatSample(name, labels, Number(value?.value ?? 0n), timeMs)];
}
