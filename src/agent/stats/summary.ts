/** `/stats/summary`: figures of the node, its pods and containers as `stats/v1alpha1.Summary`. */
import { dirname, join } from "node:path";
import type { Volume } from "../../api/core/volume/schema.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { MachineInfo } from "../node/machine/machine.ts";
import { podLogDir } from "../pods/directories.ts";
import type { CgroupSettings } from "../pods/resources/cgroup-names.ts";
import type { ContainerStats } from "../runtime/cri/stats.ts";
import type { ObservedContainer } from "../runtime/observation.ts";
import type { ImageService, Runtime } from "../runtime/runtime.ts";
import type { VolumeHealth } from "../volumes/csi/volume-health.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { CgroupReader, CgroupUsage } from "./cgroup-reader.ts";
import type { DirectorySize, DirectorySizes } from "./directory-sizes.ts";
import { type FileSystem, type FileSystems, readFileSystem } from "./file-systems.ts";
import { type InterfaceUsage, readDefaultInterface, readInterfaces } from "./network-usage.ts";
import type { Pressure } from "./pressure.ts";
import { readBootTime, readMeminfo, readProcessLimits } from "./proc-file.ts";
import { listPodTargets, type PodTarget, podsCgroup, type StatsPod } from "./stats-targets.ts";
import { UsageRates } from "./usage-rates.ts";

export interface SummaryOptions {
  readonly nodeName: string;
  readonly pods: () => Iterable<StatsPod>;
  readonly settings: CgroupSettings & SystemCgroups;
  readonly cgroups: CgroupReader;
  readonly machine: MachineInfo;
  /** Of the pod with the UID; undefined: its sandbox's are read. */
  readonly interfaces?: ((uid: string) => readonly InterfaceUsage[] | undefined) | undefined;
  readonly runtime: Pick<Runtime, "listContainerStats">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly volumes: Pick<VolumeManager, "path">;
  /** What drivers report about volumes; undefined: they are not called. */
  readonly volumeHealth?: Pick<VolumeHealth, "isAbnormal"> | undefined;
  readonly fileSystems: FileSystems;
  readonly sizes: Pick<DirectorySizes, "read" | "retain">;
  /** How long the measured size of a volume is reported; undefined: volumes are not reported. */
  readonly volumeStatsMs: number | undefined;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly clock: Clock;
}

/** Cgroups of the node's own processes; empty for none. */
interface SystemCgroups {
  readonly runtimeCgroup?: string;
  readonly agentCgroup?: string;
  readonly systemCgroup?: string;
}

type Json = Readonly<Record<string, unknown>>;

export class SummaryProvider {
  readonly #options: SummaryOptions;
  readonly #rates = new UsageRates();

  constructor(options: SummaryOptions) {
    this.#options = options;
  }

  /** `onlyCpuAndMemory` leaves out what calls the runtime and file systems. Rejects when the runtime does. */
  async read(onlyCpuAndMemory: boolean): Promise<Json> {
    const { pods, settings, cgroups } = this.#options;
    const targets = listPodTargets(pods(), settings, cgroups);
    if (!onlyCpuAndMemory) this.#options.sizes.retain(new Set(targets.flatMap((target) => this.#listMeasured(target))));
    const disk = onlyCpuAndMemory ? undefined : await this.#readDisk();
    const summary = {
      node: await this.#readNode(disk),
      pods: await Promise.all(targets.map((target) => this.#readPod(target, disk))),
    };
    const system = systemCgroups(settings).map(([, path]) => path);
    this.#rates.retain(new Set(["/", ...system, ...targets.flatMap(listPaths)]));
    return summary;
  }

  async #readNode(disk: DiskReading | undefined): Promise<Json> {
    const { nodeName, settings, machine } = this.#options;
    const node = this.#readCgroup("/", machine.memoryBytes);
    const startTime = formatTime(readBootTime());
    const swap = readSwap();
    return {
      nodeName,
      systemContainers: systemCgroups(settings).flatMap(([name, path]) => {
        const found = this.#readCgroup(path, name === "pods" ? machine.memoryBytes : undefined);
        return found === undefined ? [] : [{ name, startTime, ...found.figures, ...found.swap }];
      }),
      startTime,
      ...node?.figures,
      ...(disk === undefined ? {} : { network: readNetwork(disk.time), fs: { time: disk.time, ...disk.node } }),
      ...(disk === undefined ? {} : { runtime: { imageFs: disk.images, containerFs: disk.images } }),
      ...(disk === undefined ? {} : { rlimit: readLimits(disk.time) }),
      swap: { time: this.#now(), ...swap },
    };
  }

  async #readPod(target: PodTarget, disk: DiskReading | undefined): Promise<Json> {
    const { namespace, name, uid, pod, path, sandbox, containers } = target;
    const own = this.#readCgroup(path);
    const first = disk && sandbox && !sandbox.sandbox.hostNetwork;
    const interfaces = first ? this.#options.interfaces?.(uid) : undefined;
    const process =
      first && interfaces === undefined ? this.#options.cgroups.listProcesses(sandbox.path)[0] : undefined;
    const [volumes, logs] =
      disk === undefined ? [[], []] : await Promise.all([this.#readVolumes(target, disk), this.#readLogs(target)]);
    const containerStats = containers.map((each, index) =>
      this.#readContainer(each.path, each.container, disk, logs[index]),
    );
    return {
      podRef: { name, namespace, uid },
      startTime: pod.status?.startTime ?? formatTime(sandbox?.sandbox.createdAt ?? this.#options.clock.now()),
      containers: containerStats,
      ...own?.figures,
      ...(disk === undefined || (process === undefined && interfaces === undefined)
        ? {}
        : { network: toNetwork(interfaces ?? readInterfaces(process ?? "self"), disk.time) }),
      ...(volumes.length === 0 ? {} : { volume: volumes.map(({ stats }) => stats) }),
      ...(disk === undefined
        ? {}
        : {
            "ephemeral-storage": { time: disk.time, ...sumUsed(disk, containers, [...logs, ...toEphemeral(volumes)]) },
          }),
      ...(disk === undefined ? {} : own?.swap),
    };
  }

  #readContainer(
    path: string,
    container: ObservedContainer,
    disk: DiskReading | undefined,
    logs: DirectorySize | undefined,
  ): Json {
    const found = this.#readCgroup(path);
    return {
      name: container.name,
      startTime: formatTime(container.startedAt),
      ...found?.figures,
      ...(disk === undefined ? {} : { rootfs: toRootFs(disk, container), logs: toLogs(disk, logs) }),
      ...(disk === undefined ? {} : found?.swap),
    };
  }

  /** `memoryBytes`: the cgroup's limit, where it is not in its files. */
  #readCgroup(path: string, memoryBytes = this.#options.cgroups.readMemoryLimit(path)) {
    const usage = this.#options.cgroups.readUsage(path);
    if (usage === undefined) return undefined;
    const time = formatNanoTime(usage.timeMs);
    const { memory, pressure } = usage;
    const memoryFigures = memory && { ...toMemory(memory, memoryBytes, time), ...toPsi(pressure?.memory) };
    return {
      figures: {
        ...this.#toCpu(path, usage, time),
        ...(memoryFigures && { memory: memoryFigures }),
        ...(pressure?.io && { io: { time, ...toPsi(pressure.io) } }),
      },
      swap: memory === undefined ? {} : { swap: { time, swapUsageBytes: memory.swap } },
    };
  }

  #toCpu(path: string, usage: CgroupUsage, time: string): Json {
    if (usage.cpu === undefined) return {};
    const usageNanoCores = this.#rates.update(path, usage) ?? 0;
    const { totalNs } = usage.cpu;
    return { cpu: { time, usageNanoCores, usageCoreNanoSeconds: totalNs, ...toPsi(usage.pressure?.cpu) } };
  }

  async #readDisk(): Promise<DiskReading> {
    const { rootDir, runtime, images } = this.#options;
    const [node, info, { stats = [] }] = await Promise.all([
      readFileSystem(rootDir),
      images.imageFsInfo({}),
      runtime.listContainerStats({}),
    ]);
    const [imageFs] = info.imageFilesystems ?? [];
    const mountPoint = imageFs?.fsId?.mountpoint;
    // The directory of the snapshots may be inaccessible, the file system is that of its parent.
    const found = mountPoint === undefined ? undefined : await readFileSystem(dirname(mountPoint));
    const usedBytes = Number(imageFs?.usedBytes?.value ?? 0n);
    const inodesUsed = Number(imageFs?.inodesUsed?.value ?? 0n);
    const time = this.#now();
    return {
      time,
      node,
      images: { time, ...(found ?? node), ...(imageFs === undefined ? {} : { usedBytes, inodesUsed }) },
      containers: new Map(stats.map((each) => [each.attributes?.id ?? "", each.writableLayer])),
    };
  }

  /** Volumes of claims are file systems of their own; the directories of others are measured. */
  async #readVolumes({ pod, namespace }: PodTarget, { node }: DiskReading): Promise<readonly VolumeReading[]> {
    const { fileSystems, sizes, volumes, volumeStatsMs } = this.#options;
    if (volumeStatsMs === undefined) return [];
    const read = async (volume: Volume): Promise<readonly VolumeReading[]> => {
      const path = volumes.path(pod, volume);
      const { name, persistentVolumeClaim: claim } = volume;
      const time = this.#now();
      if (claim !== undefined) {
        const found = await fileSystems.read(path);
        const pvcRef = { name: claim.claimName, namespace };
        const abnormal = this.#options.volumeHealth?.isAbnormal(pod, name);
        const volumeHealthStats = abnormal === undefined ? {} : { volumeHealthStats: { abnormal } };
        const stats = { time, ...found, name, pvcRef, ...volumeHealthStats };
        return found === undefined ? [] : [{ stats, size: undefined }];
      }
      if (!isMeasured(volume)) return [];
      const [size, own] = await Promise.all([sizes.read(path, volumeStatsMs), fileSystems.read(path)]);
      if (size === undefined) return [];
      return [{ stats: { time, ...(own ?? node), ...size, name }, size: isOnDisk(volume) ? size : undefined }];
    };
    return (await Promise.all((pod.spec?.volumes ?? []).map(read))).flat();
  }

  async #readLogs(target: PodTarget): Promise<readonly (DirectorySize | undefined)[]> {
    const read = ({ container }: PodTarget["containers"][number]) =>
      this.#options.sizes.read(this.#logDirectory(target, container), LOGS_MAX_AGE_MS);
    return await Promise.all(target.containers.map(read));
  }

  #logDirectory({ pod }: PodTarget, { name }: ObservedContainer): string {
    return join(podLogDir(this.#options, pod), name);
  }

  #listMeasured(target: PodTarget): readonly string[] {
    const volumes = (target.pod.spec?.volumes ?? []).filter(isMeasured);
    return [
      ...volumes.map((volume) => this.#options.volumes.path(target.pod, volume)),
      ...target.containers.map(({ container }) => this.#logDirectory(target, container)),
    ];
  }

  #now(): string {
    return formatNanoTime(this.#options.clock.now());
  }
}

/** With kubelet's names. */
function systemCgroups(settings: SummaryOptions["settings"]): readonly (readonly [name: string, path: string])[] {
  const { runtimeCgroup = "", agentCgroup = "", systemCgroup = "" } = settings;
  const all = [
    ["kubelet", agentCgroup],
    ["runtime", runtimeCgroup],
    ["misc", systemCgroup],
    ["pods", podsCgroup(settings)],
  ] as const;
  return all.filter(([, path]) => path !== "");
}

/** Logs grow fast. */
const LOGS_MAX_AGE_MS = 10_000;

interface VolumeReading {
  /** As in the response. */
  readonly stats: Json;
  /** What it adds to the pod's ephemeral storage. */
  readonly size: DirectorySize | undefined;
}

interface DiskReading {
  readonly time: string;
  readonly node: FileSystem;
  /** Of images and of the containers' writable layers. */
  readonly images: FileSystem & { readonly time: string };
  readonly containers: ReadonlyMap<string, ContainerStats["writableLayer"]>;
}

function listPaths({ path, sandbox, containers }: PodTarget): readonly string[] {
  return [path, ...(sandbox === undefined ? [] : [sandbox.path]), ...containers.map((each) => each.path)];
}

function toMemory(
  { usage, workingSet, rss, pageFaults, majorPageFaults }: NonNullable<CgroupUsage["memory"]>,
  limitBytes: number | undefined,
  time: string,
): Json {
  return {
    time,
    ...(limitBytes === undefined ? {} : { availableBytes: Math.max(0, limitBytes - workingSet) }),
    usageBytes: usage,
    workingSetBytes: workingSet,
    rssBytes: rss,
    pageFaults: pageFaults[0],
    majorPageFaults: majorPageFaults[0],
  };
}

function toPsi(psi: Pressure | undefined): Json {
  return psi === undefined ? {} : { psi };
}

function toRootFs(disk: DiskReading, { id }: ObservedContainer): Json {
  const layer = disk.containers.get(id);
  const used = { usedBytes: Number(layer?.usedBytes?.value ?? 0n), inodesUsed: Number(layer?.inodesUsed?.value ?? 0n) };
  return { ...disk.images, ...used };
}

/** Logs are on the node's file system. */
function toLogs({ time, node }: DiskReading, size: DirectorySize | undefined): Json {
  const { usedBytes: _used, inodesUsed: _inodes, ...rest } = node;
  return { time, ...rest, ...size };
}

/** Volumes whose files are in a directory of the pod. */
function isMeasured({ emptyDir, configMap, secret, downwardAPI, projected }: Volume): boolean {
  return [emptyDir, configMap, secret, downwardAPI, projected].some((each) => each !== undefined);
}

/** Whether the volume is part of the pod's ephemeral storage: those in memory are not. */
function isOnDisk({ emptyDir, configMap }: Volume): boolean {
  return (emptyDir !== undefined && !emptyDir.medium) || configMap !== undefined;
}

function toEphemeral(volumes: readonly VolumeReading[]): readonly (DirectorySize | undefined)[] {
  return volumes.map(({ size }) => size);
}

/** Of writable layers, logs and volumes. */
function sumUsed(
  disk: DiskReading,
  containers: PodTarget["containers"],
  directories: readonly (DirectorySize | undefined)[],
): Json {
  const layers = containers.map(({ container }) => disk.containers.get(container.id));
  const sum = (name: "usedBytes" | "inodesUsed"): number =>
    layers.reduce((total, layer) => total + Number(layer?.[name]?.value ?? 0n), 0) +
    directories.reduce((total, size) => total + (size?.[name] ?? 0), 0);
  return { ...disk.node, usedBytes: sum("usedBytes"), inodesUsed: sum("inodesUsed") };
}

function readNetwork(time: string): Json {
  return toNetwork(readInterfaces("self"), time, readDefaultInterface());
}

/** The figures of the default interface beside those of all. */
function toNetwork(found: readonly InterfaceUsage[], time: string, defaultName?: string): Json {
  const interfaces = found.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => {
    return { name, rxBytes, rxErrors, txBytes, txErrors };
  });
  const main = interfaces.find(({ name }) => name === (defaultName ?? "eth0")) ?? interfaces[0];
  return { time, ...main, interfaces };
}

function readLimits(time: string): Json {
  const { running, max } = readProcessLimits();
  return { time, maxpid: max, curproc: running };
}

function readSwap(): Json {
  const of = readMeminfo();
  return { swapAvailableBytes: of("SwapFree"), swapUsageBytes: of("SwapTotal") - of("SwapFree") };
}

/** RFC 3339 with milliseconds; the format allows nanoseconds. */
function formatNanoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
