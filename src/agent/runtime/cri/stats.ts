import { bigInt64, bigUint64, double, list, map, message, optional, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { containerAttributes } from "./container.ts";
import { metricType } from "./enums.ts";
import { filesystemUsage, windowsFilesystemUsage } from "./image.ts";
import { podSandboxAttributes } from "./sandbox.ts";
import { uInt64Value } from "./shared.ts";

export const podSandboxStatsRequest = message("runtime.v1.PodSandboxStatsRequest", {
  podSandboxId: optional(1, string),
});
export type PodSandboxStatsRequest = Infer<typeof podSandboxStatsRequest>;

export const psiData = message("runtime.v1.PsiData", {
  Total: optional(1, bigUint64),
  Avg10: optional(2, double),
  Avg60: optional(3, double),
  Avg300: optional(4, double),
});
export type PsiData = Infer<typeof psiData>;

export const psiStats = message("runtime.v1.PsiStats", {
  Full: optional(1, psiData),
  Some: optional(2, psiData),
});
export type PsiStats = Infer<typeof psiStats>;

export const cpuUsage = message("runtime.v1.CpuUsage", {
  timestamp: optional(1, bigInt64),
  usageCoreNanoSeconds: optional(2, uInt64Value),
  usageNanoCores: optional(3, uInt64Value),
  psi: optional(4, psiStats),
});
export type CpuUsage = Infer<typeof cpuUsage>;

export const memoryUsage = message("runtime.v1.MemoryUsage", {
  timestamp: optional(1, bigInt64),
  workingSetBytes: optional(2, uInt64Value),
  availableBytes: optional(3, uInt64Value),
  usageBytes: optional(4, uInt64Value),
  rssBytes: optional(5, uInt64Value),
  pageFaults: optional(6, uInt64Value),
  majorPageFaults: optional(7, uInt64Value),
  psi: optional(8, psiStats),
});
export type MemoryUsage = Infer<typeof memoryUsage>;

export const networkInterfaceUsage = message("runtime.v1.NetworkInterfaceUsage", {
  name: optional(1, string),
  rxBytes: optional(2, uInt64Value),
  rxErrors: optional(3, uInt64Value),
  txBytes: optional(4, uInt64Value),
  txErrors: optional(5, uInt64Value),
});
export type NetworkInterfaceUsage = Infer<typeof networkInterfaceUsage>;

export const networkUsage = message("runtime.v1.NetworkUsage", {
  timestamp: optional(1, bigInt64),
  defaultInterface: optional(2, networkInterfaceUsage),
  interfaces: optional(3, list(networkInterfaceUsage)),
});
export type NetworkUsage = Infer<typeof networkUsage>;

export const processUsage = message("runtime.v1.ProcessUsage", {
  timestamp: optional(1, bigInt64),
  processCount: optional(2, uInt64Value),
});
export type ProcessUsage = Infer<typeof processUsage>;

export const swapUsage = message("runtime.v1.SwapUsage", {
  timestamp: optional(1, bigInt64),
  swapAvailableBytes: optional(2, uInt64Value),
  swapUsageBytes: optional(3, uInt64Value),
});
export type SwapUsage = Infer<typeof swapUsage>;

export const ioUsage = message("runtime.v1.IoUsage", {
  timestamp: optional(1, bigInt64),
  psi: optional(2, psiStats),
});
export type IoUsage = Infer<typeof ioUsage>;

export const containerStats = message("runtime.v1.ContainerStats", {
  attributes: optional(1, containerAttributes),
  cpu: optional(2, cpuUsage),
  memory: optional(3, memoryUsage),
  writableLayer: optional(4, filesystemUsage),
  swap: optional(5, swapUsage),
  io: optional(6, ioUsage),
});
export type ContainerStats = Infer<typeof containerStats>;

export const linuxPodSandboxStats = message("runtime.v1.LinuxPodSandboxStats", {
  cpu: optional(1, cpuUsage),
  memory: optional(2, memoryUsage),
  network: optional(3, networkUsage),
  process: optional(4, processUsage),
  containers: optional(5, list(containerStats)),
  io: optional(6, ioUsage),
});
export type LinuxPodSandboxStats = Infer<typeof linuxPodSandboxStats>;

export const windowsCpuUsage = message("runtime.v1.WindowsCpuUsage", {
  timestamp: optional(1, bigInt64),
  usageCoreNanoSeconds: optional(2, uInt64Value),
  usageNanoCores: optional(3, uInt64Value),
});
export type WindowsCpuUsage = Infer<typeof windowsCpuUsage>;

export const windowsMemoryUsage = message("runtime.v1.WindowsMemoryUsage", {
  timestamp: optional(1, bigInt64),
  workingSetBytes: optional(2, uInt64Value),
  availableBytes: optional(3, uInt64Value),
  pageFaults: optional(4, uInt64Value),
  commitMemoryBytes: optional(5, uInt64Value),
});
export type WindowsMemoryUsage = Infer<typeof windowsMemoryUsage>;

export const windowsNetworkInterfaceUsage = message("runtime.v1.WindowsNetworkInterfaceUsage", {
  name: optional(1, string),
  rxBytes: optional(2, uInt64Value),
  rxPacketsDropped: optional(3, uInt64Value),
  txBytes: optional(4, uInt64Value),
  txPacketsDropped: optional(5, uInt64Value),
});
export type WindowsNetworkInterfaceUsage = Infer<typeof windowsNetworkInterfaceUsage>;

export const windowsNetworkUsage = message("runtime.v1.WindowsNetworkUsage", {
  timestamp: optional(1, bigInt64),
  defaultInterface: optional(2, windowsNetworkInterfaceUsage),
  interfaces: optional(3, list(windowsNetworkInterfaceUsage)),
});
export type WindowsNetworkUsage = Infer<typeof windowsNetworkUsage>;

export const windowsProcessUsage = message("runtime.v1.WindowsProcessUsage", {
  timestamp: optional(1, bigInt64),
  processCount: optional(2, uInt64Value),
});
export type WindowsProcessUsage = Infer<typeof windowsProcessUsage>;

export const windowsContainerStats = message("runtime.v1.WindowsContainerStats", {
  attributes: optional(1, containerAttributes),
  cpu: optional(2, windowsCpuUsage),
  memory: optional(3, windowsMemoryUsage),
  writableLayer: optional(4, windowsFilesystemUsage),
});
export type WindowsContainerStats = Infer<typeof windowsContainerStats>;

export const windowsPodSandboxStats = message("runtime.v1.WindowsPodSandboxStats", {
  cpu: optional(1, windowsCpuUsage),
  memory: optional(2, windowsMemoryUsage),
  network: optional(3, windowsNetworkUsage),
  process: optional(4, windowsProcessUsage),
  containers: optional(5, list(windowsContainerStats)),
});
export type WindowsPodSandboxStats = Infer<typeof windowsPodSandboxStats>;

export const podSandboxStats = message("runtime.v1.PodSandboxStats", {
  attributes: optional(1, podSandboxAttributes),
  linux: optional(2, linuxPodSandboxStats),
  windows: optional(3, windowsPodSandboxStats),
});
export type PodSandboxStats = Infer<typeof podSandboxStats>;

export const podSandboxStatsResponse = message("runtime.v1.PodSandboxStatsResponse", {
  stats: optional(1, podSandboxStats),
});
export type PodSandboxStatsResponse = Infer<typeof podSandboxStatsResponse>;

export const podSandboxStatsFilter = message("runtime.v1.PodSandboxStatsFilter", {
  id: optional(1, string),
  labelSelector: optional(2, map(string)),
});
export type PodSandboxStatsFilter = Infer<typeof podSandboxStatsFilter>;

export const listPodSandboxStatsRequest = message("runtime.v1.ListPodSandboxStatsRequest", {
  filter: optional(1, podSandboxStatsFilter),
});
export type ListPodSandboxStatsRequest = Infer<typeof listPodSandboxStatsRequest>;

export const listPodSandboxStatsResponse = message("runtime.v1.ListPodSandboxStatsResponse", {
  stats: optional(1, list(podSandboxStats)),
});
export type ListPodSandboxStatsResponse = Infer<typeof listPodSandboxStatsResponse>;

export const containerStatsRequest = message("runtime.v1.ContainerStatsRequest", {
  containerId: optional(1, string),
});
export type ContainerStatsRequest = Infer<typeof containerStatsRequest>;

export const containerStatsResponse = message("runtime.v1.ContainerStatsResponse", {
  stats: optional(1, containerStats),
});
export type ContainerStatsResponse = Infer<typeof containerStatsResponse>;

export const containerStatsFilter = message("runtime.v1.ContainerStatsFilter", {
  id: optional(1, string),
  podSandboxId: optional(2, string),
  labelSelector: optional(3, map(string)),
});
export type ContainerStatsFilter = Infer<typeof containerStatsFilter>;

export const listContainerStatsRequest = message("runtime.v1.ListContainerStatsRequest", {
  filter: optional(1, containerStatsFilter),
});
export type ListContainerStatsRequest = Infer<typeof listContainerStatsRequest>;

export const listContainerStatsResponse = message("runtime.v1.ListContainerStatsResponse", {
  stats: optional(1, list(containerStats)),
});
export type ListContainerStatsResponse = Infer<typeof listContainerStatsResponse>;

export const listMetricDescriptorsRequest = message("runtime.v1.ListMetricDescriptorsRequest", {});
export type ListMetricDescriptorsRequest = Infer<typeof listMetricDescriptorsRequest>;

export const metricDescriptor = message("runtime.v1.MetricDescriptor", {
  name: optional(1, string),
  help: optional(2, string),
  labelKeys: optional(3, list(string)),
});
export type MetricDescriptor = Infer<typeof metricDescriptor>;

export const listMetricDescriptorsResponse = message("runtime.v1.ListMetricDescriptorsResponse", {
  descriptors: optional(1, list(metricDescriptor)),
});
export type ListMetricDescriptorsResponse = Infer<typeof listMetricDescriptorsResponse>;

export const listPodSandboxMetricsRequest = message("runtime.v1.ListPodSandboxMetricsRequest", {});
export type ListPodSandboxMetricsRequest = Infer<typeof listPodSandboxMetricsRequest>;

export const metric = message("runtime.v1.Metric", {
  name: optional(1, string),
  timestamp: optional(2, bigInt64),
  metricType: optional(3, metricType),
  labelValues: optional(4, list(string)),
  value: optional(5, uInt64Value),
});
export type Metric = Infer<typeof metric>;

export const containerMetrics = message("runtime.v1.ContainerMetrics", {
  containerId: optional(1, string),
  metrics: optional(2, list(metric)),
});
export type ContainerMetrics = Infer<typeof containerMetrics>;

export const podSandboxMetrics = message("runtime.v1.PodSandboxMetrics", {
  podSandboxId: optional(1, string),
  metrics: optional(2, list(metric)),
  containerMetrics: optional(3, list(containerMetrics)),
});
export type PodSandboxMetrics = Infer<typeof podSandboxMetrics>;

export const listPodSandboxMetricsResponse = message("runtime.v1.ListPodSandboxMetricsResponse", {
  podMetrics: optional(1, list(podSandboxMetrics)),
});
export type ListPodSandboxMetricsResponse = Infer<typeof listPodSandboxMetricsResponse>;
