/** What the agent serves of its metrics: the pages' figures, and the metrics of the agent itself. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { ContainerPage, type ContainerPageOptions } from "./container-page.ts";
import { FileSystems } from "./file-systems.ts";
import { readMeminfo } from "./proc-file.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { renderResourcePage } from "./resource-page.ts";
import { type SummaryOptions, SummaryProvider } from "./summary.ts";
import { VolumeMetrics } from "./volume-metrics.ts";

export interface Figures {
  /** Of `/metrics`; `refresh` first reads what takes time. */
  readonly registry: MetricRegistry;
  refresh(): Promise<void>;
  /** Of `/metrics/probes`. */
  readonly probes: MetricRegistry;
  readonly requests: RequestMetrics;
  /** The text of `/metrics/cadvisor`. */
  renderContainers(): Promise<string>;
  /** The text of `/metrics/resource`. */
  renderResources(): string;
  /** The object of `/stats/summary`. */
  readSummary(onlyCpuAndMemory: boolean): Promise<unknown>;
}

export function createFigures(
  { registry, probes }: { readonly registry: MetricRegistry; readonly probes: MetricRegistry },
  given: Omit<SummaryOptions, "fileSystems"> & ContainerPageOptions,
): Figures {
  const options = { ...given, fileSystems: new FileSystems(given.clock) };
  const volumes = new VolumeMetrics(registry, options);
  const containers = new ContainerPage(options);
  const summary = new SummaryProvider(options);
  const hasSwap = (): boolean => readMeminfo()("SwapTotal") > 0;
  return {
    registry,
    refresh: () => volumes.refresh(),
    probes,
    requests: new RequestMetrics(registry, options.clock),
    renderContainers: () => containers.render(),
    renderResources: () => renderResourcePage({ ...options, hasSwap }),
    readSummary: (onlyCpuAndMemory) => summary.read(onlyCpuAndMemory),
  };
}
