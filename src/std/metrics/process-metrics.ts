/** Metrics of the process: CPU, memory, file descriptors and the event loop. */
import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import type { GaugeFamily, MetricRegistry } from "./metrics.ts";

/** The resolution of the event loop delay: each sample wakes the process, and costs some 40 µs. */
const RESOLUTION_MS = 100;
const QUANTILES = [0.5, 0.9, 0.99];

/** Disposing stops the measurement of the event loop. */
export function registerProcessMetrics(registry: MetricRegistry): Disposable {
  registerHostMetrics(registry);
  registerHeapMetrics(registry);
  return registerEventLoopMetrics(registry);
}

function registerHostMetrics(registry: MetricRegistry): void {
  const cpu = registry.counter({
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time spent in seconds.",
  });
  const resident = registerGauge(registry, "process_resident_memory_bytes", "Resident memory size in bytes.");
  const virtual = registerGauge(registry, "process_virtual_memory_bytes", "Virtual memory size in bytes.");
  const open = registerGauge(registry, "process_open_fds", "Number of open file descriptors.");
  const most = registerGauge(registry, "process_max_fds", "Maximum number of open file descriptors.");
  const started = registerGauge(
    registry,
    "process_start_time_seconds",
    "Start time of the process since unix epoch in seconds.",
  );
  started(performance.timeOrigin / 1000);
  const limit = openFilesMax();
  registerGauge(
    registry,
    "process_virtual_memory_max_bytes",
    "Maximum amount of virtual memory available in bytes.",
  )(addressSpaceMax());
  const received = registry.counter({
    name: "process_network_receive_bytes_total",
    help: "Number of bytes received by the process over the network.",
  });
  const sent = registry.counter({
    name: "process_network_transmit_bytes_total",
    help: "Number of bytes sent by the process over the network.",
  });
  registry.onCollect(() => {
    const { user, system } = process.cpuUsage();
    cpu.with().value = (user + system) / 1e6;
    const network = readNetworkBytes();
    if (network !== undefined) {
      received.with().value = network.received;
      sent.with().value = network.sent;
    }
    resident(process.memoryUsage.rss());
    const pages = Number(readProc("/proc/self/statm")?.split(" ")[0]);
    if (pages > 0) virtual(pages * 4096);
    const descriptors = countOpenFiles();
    if (descriptors !== undefined) open(descriptors);
    if (limit !== undefined) most(limit);
  });
}

function registerHeapMetrics(registry: MetricRegistry): void {
  const total = registerGauge(registry, "nodejs_heap_size_total_bytes", "Size of the V8 heap in bytes.");
  const used = registerGauge(registry, "nodejs_heap_size_used_bytes", "Used size of the V8 heap in bytes.");
  const limit = registerGauge(registry, "nodejs_heap_size_limit_bytes", "Maximum size of the V8 heap in bytes.");
  const external = registerGauge(
    registry,
    "nodejs_external_memory_bytes",
    "Memory of C++ objects that JavaScript objects reference, in bytes.",
  );
  const buffers = registerGauge(registry, "nodejs_array_buffers_bytes", "Memory of buffers, in bytes.");
  const spaces = registry.gauge({
    name: "nodejs_heap_space_size_used_bytes",
    help: "Used size of each V8 heap space in bytes.",
    labels: ["space"],
  });
  const version = registry.gauge({
    name: "nodejs_version_info",
    help: "1, labelled with the version of Node.js.",
    labels: ["version"],
  });
  version.with(process.version).set(1);
  registry.onCollect(() => {
    const memory = process.memoryUsage();
    total(memory.heapTotal);
    used(memory.heapUsed);
    external(memory.external);
    buffers(memory.arrayBuffers);
    limit(getHeapStatistics().heap_size_limit);
    for (const { space_name, space_used_size } of getHeapSpaceStatistics()) {
      spaces.with(space_name.replace(/_space$/, "")).set(space_used_size);
    }
  });
}

/** The delay is measured from the first scrape on, so that it costs nothing without scrapes. */
function registerEventLoopMetrics(registry: MetricRegistry): Disposable {
  const help = "Event loop delay since the last scrape in seconds";
  const mean = registerGauge(registry, "nodejs_eventloop_lag_mean_seconds", `${help}: the mean.`);
  const highest = registerGauge(registry, "nodejs_eventloop_lag_max_seconds", `${help}: the maximum.`);
  const quantiles = QUANTILES.map((quantile) => {
    const name = `nodejs_eventloop_lag_p${quantile * 100}_seconds`;
    return { quantile, set: registerGauge(registry, name, `${help}: the ${quantile * 100}th percentile.`) };
  });
  const busy = registry.counter({
    name: "nodejs_eventloop_active_seconds_total",
    help: "Time that the event loop was active in seconds.",
  });
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const late = (nanoseconds: number): number => Math.max(0, (nanoseconds || 0) / 1e9 - RESOLUTION_MS / 1000);
  registry.onCollect(() => {
    busy.with().value = performance.eventLoopUtilization().active / 1000;
    delays.enable();
    if (delays.count === 0) return;
    mean(late(delays.mean));
    highest(late(delays.max));
    for (const { quantile, set } of quantiles) set(late(delays.percentile(quantile * 100)));
    delays.reset();
  });
  return { [Symbol.dispose]: () => void delays.disable() };
}

function registerGauge(registry: MetricRegistry, name: string, help: string): (value: number) => void {
  const family: GaugeFamily = registry.gauge({ name, help });
  return (value) => family.with().set(value);
}

/** Undefined when the host has no such file. */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function countOpenFiles(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}

/** 2^64 when it is not limited, as Prometheus' client for Go reports it. */
function addressSpaceMax(): number {
  const match = /^Max address space\s+(\d+)/m.exec(readProc("/proc/self/limits") ?? "");
  return match === null ? 2 ** 64 : Number(match[1]);
}

/** Bytes of IP packets of the process' network namespace, which Prometheus' client for Go reports too. */
function readNetworkBytes(): { readonly received: number; readonly sent: number } | undefined {
  const lines = (readProc("/proc/self/net/netstat") ?? "").split("\n").filter((line) => line.startsWith("IpExt:"));
  const [names = [], values = []] = lines.map((line) => line.split(" "));
  const readCounter = (name: string): number => Number(values[names.indexOf(name)]);
  const found = { received: readCounter("InOctets"), sent: readCounter("OutOctets") };
  return Number.isNaN(found.received + found.sent) ? undefined : found;
}

function openFilesMax(): number | undefined {
  const match = /^Max open files\s+(\d+)/m.exec(readProc("/proc/self/limits") ?? "");
  return match === null ? undefined : Number(match[1]);
}
