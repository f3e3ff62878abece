/** What the agent serves of its metrics: the pages' figures, and the metrics of the agent itself. */
import { registerHealthMetrics } from "../../http/health-metrics.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { LogMetrics } from "../metrics/log-metrics.ts";
import { RequestMetrics } from "../metrics/request-metrics.ts";
import { VolumeMetrics } from "../metrics/volume-metrics.ts";
import { ContainerPage, type ContainerPageOptions } from "./container-page.ts";
import { type DirectorySize, DirectorySizes } from "./directory-sizes.ts";
import { FileSystems } from "./file-systems.ts";
import { readMeminfo } from "./proc-file.ts";
import { renderResourcePage } from "./resource-page.ts";
import type { MetricsRuntime } from "./runtime-metrics.ts";
import { RuntimeStats, type RuntimeStatsOptions } from "./runtime-stats.ts";
import { type SummaryOptions, SummaryProvider } from "./summary.ts";

export interface Figures {
  /** Of `/metrics`; `refresh` first reads what takes time. */
  readonly registry: MetricRegistry;
  refresh(): Promise<void>;
  /** Of `/metrics/probes`. */
  readonly probes: MetricRegistry;
  /** Of `/metrics/slis`. */
  readonly slis: MetricRegistry;
  readonly observeHealth: (check: string, ok: boolean) => void;
  readonly requests: RequestMetrics;
  /** The text of `/metrics/cadvisor`. */
  renderContainers(): Promise<string>;
  /** The text of `/metrics/resource`. */
  renderResources(): Promise<string>;
  /** The object of `/stats/summary`. */
  readSummary(onlyCpuAndMemory: boolean): Promise<unknown>;
}

type FiguresOptions = Omit<SummaryOptions, "fileSystems" | "sizes" | "interfaces"> &
  Omit<ContainerPageOptions, "metricsRuntime"> & {
    readonly runtime: RuntimeStatsOptions["runtime"] & MetricsRuntime;
    /** How volumes are measured; by their files when absent. */
    readonly measureVolume?: ((directory: string) => Promise<DirectorySize>) | undefined;
    /** The runtime measures pods and containers, if it can. */
    readonly runtimeMeasures?: boolean;
  };

export function createFigures(
  { registry, probes }: { readonly registry: MetricRegistry; readonly probes: MetricRegistry },
  given: FiguresOptions,
): Figures {
  const { clock } = given;
  const measured = given.runtimeMeasures === true ? new RuntimeStats(given) : undefined;
  const options = {
    ...given,
    fileSystems: new FileSystems(clock),
    sizes: new DirectorySizes(clock, given.measureVolume),
    interfaces: measured && ((uid: string) => measured.readInterfaces(uid)),
    metricsRuntime: measured && given.runtime,
  };
  const volumes = new VolumeMetrics(registry, options);
  const logs = new LogMetrics(registry, { ...options, sizes: new DirectorySizes(clock) });
  const containers = new ContainerPage(options);
  const cgroups = measured?.cgroups ?? given.cgroups;
  const summary = new SummaryProvider({ ...options, cgroups });
  const slis = new MetricRegistry();
  const observeHealth = registerHealthMetrics(slis);
  const hasSwap = (): boolean => readMeminfo()("SwapTotal") > 0;
  return {
    registry,
    refresh: async () => void (await Promise.all([volumes.refresh(), logs.refresh()])),
    probes,
    slis,
    observeHealth: (check, ok) => observeHealth("healthz", check, ok),
    requests: new RequestMetrics(registry, clock),
    renderContainers: () => containers.render(),
    async renderResources() {
      await measured?.refresh();
      return renderResourcePage({ ...options, cgroups, hasSwap });
    },
    async readSummary(onlyCpuAndMemory) {
      await measured?.refresh();
      return await summary.read(onlyCpuAndMemory);
    },
  };
}
