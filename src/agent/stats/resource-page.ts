/** `/metrics/resource`: CPU time and memory of the node, its pods and containers, for autoscalers. */
import type { CgroupSettings } from "../pods/resources/cgroup-names.ts";
import type { CgroupReader, ResourceUsage } from "./cgroup-reader.ts";
import { formatFamily, formatLabels, formatSample, type SampleFamily } from "./metric-text.ts";
import { listPodTargets, type StatsPod } from "./stats-targets.ts";

export interface ResourcePageOptions {
  readonly pods: () => Iterable<StatsPod>;
  readonly settings: CgroupSettings;
  readonly cgroups: CgroupReader;
  /** Whether the machine has swap; without, only the node's is reported. */
  readonly hasSwap: () => boolean;
}

interface ResourceReading {
  readonly labels: string;
  readonly usage: ResourceUsage;
  /** Seconds since 1970. */
  readonly startedAt?: number;
}

type Scope = "container" | "node" | "pod";

interface ResourceFamily extends SampleFamily {
  readonly scope: Scope;
  readonly read: (reading: ResourceReading) => number | undefined;
  readonly hasTime?: false;
  readonly needsSwap?: true;
}

const cpuSeconds = ({ usage }: ResourceReading): number | undefined => usage.cpuNs && usage.cpuNs / 1e9;
const workingSet = ({ usage }: ResourceReading): number | undefined => usage.workingSet;
const swap = ({ usage }: ResourceReading): number | undefined => usage.swap;

function makeFamilies(scope: Scope): readonly ResourceFamily[] {
  const amount = scope === "node" ? "swap usage of the node" : `amount of the ${scope} swap usage`;
  const families: readonly ResourceFamily[] = [
    {
      scope,
      name: `${scope}_cpu_usage_seconds_total`,
      type: "counter",
      help: `[STABLE] Cumulative cpu time consumed by the ${scope} in core-seconds`,
      read: cpuSeconds,
    },
    {
      scope,
      name: `${scope}_memory_working_set_bytes`,
      type: "gauge",
      help: `[STABLE] Current working set of the ${scope} in bytes`,
      read: workingSet,
    },
    {
      scope,
      name: `${scope}_swap_usage_bytes`,
      type: "gauge",
      help: `[ALPHA] Current ${amount} in bytes. Reported only on non-windows systems`,
      read: swap,
      ...(scope === "node" ? {} : { needsSwap: true }),
    },
  ];
  if (scope !== "container") return families;
  const start: ResourceFamily = {
    scope,
    name: "container_start_time_seconds",
    type: "gauge",
    help: "[STABLE] Start time of the container since unix epoch in seconds",
    read: ({ startedAt }) => startedAt,
    hasTime: false,
  };
  return [...families, start];
}

const families = [...makeFamilies("container"), ...makeFamilies("node"), ...makeFamilies("pod")];

/** The page's text. What cannot be read is left out. */
export function renderResourcePage({ pods, settings, cgroups, hasSwap }: ResourcePageOptions): string {
  const readings: Record<Scope, ResourceReading[]> = { container: [], node: [], pod: [] };
  const add = (scope: Scope, path: string, labels: Readonly<Record<string, string>>, startedAt?: number): void => {
    const usage = cgroups.readResources(path);
    if (usage === undefined) return;
    readings[scope].push({ usage, labels: formatLabels(labels), ...(startedAt === undefined ? {} : { startedAt }) });
  };
  add("node", "/", {});
  for (const { path, namespace, name: pod, containers } of listPodTargets(pods(), settings, cgroups)) {
    add("pod", path, { namespace, pod });
    for (const { path: own, container } of containers) {
      add("container", own, { container: container.name, namespace, pod }, container.startedAt / 1000);
    }
  }
  const isSwapShown = hasSwap();
  const text = families.map((family) => {
    if (family.needsSwap === true && !isSwapShown) return "";
    const samples = readings[family.scope].flatMap((reading) => {
      const value = family.read(reading);
      const time = family.hasTime === false ? undefined : reading.usage.timeMs;
      return value === undefined ? [] : [formatSample(family.name, reading.labels, value, time)];
    });
    return formatFamily(family, samples);
  });
  return `${text.join("")}${renderError(readings.node.length === 0)}`;
}

function renderError(hasFailed: boolean): string {
  const name = "resource_scrape_error";
  const help = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise";
  return formatFamily({ name, type: "gauge", help }, [formatSample(name, "", hasFailed ? 1 : 0)]);
}
