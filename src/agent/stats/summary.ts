/** `/stats/summary`: figures of the node, its pods and containers as `stats/v1alpha1.Summary`. */
import { dirname } from "node:path";
import type { Volume } from "../../api/core/volume/schema.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { MachineInfo } from "../node/machine/machine.ts";
import type { CgroupSettings } from "../pods/resources/cgroup-names.ts";
import type { ContainerStats } from "../runtime/cri/stats.ts";
import type { ObservedContainer } from "../runtime/observation.ts";
import type { ImageService, Runtime } from "../runtime/runtime.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { CgroupReader, CgroupUsage } from "./cgroup-reader.ts";
import { type FileSystem, type FileSystems, readFileSystem } from "./file-systems.ts";
import { type InterfaceUsage, readDefaultInterface, readInterfaces } from "./network-usage.ts";
import { readMeminfo, readProcFile, readProcNumber } from "./proc-file.ts";
import { listPodTargets, type PodTarget, podsCgroup, type StatsPod } from "./stats-targets.ts";
import { UsageRates } from "./usage-rates.ts";

export interface SummaryOptions {
  readonly nodeName: string;
  readonly pods: () => Iterable<StatsPod>;
  readonly settings: CgroupSettings;
  readonly cgroups: CgroupReader;
  readonly machine: MachineInfo;
  readonly runtime: Pick<Runtime, "listContainerStats">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly volumes: Pick<VolumeManager, "path">;
  readonly fileSystems: FileSystems;
  readonly rootDir: string;
  readonly clock: Clock;
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
    const disk = onlyCpuAndMemory ? undefined : await this.#readDisk();
    const summary = {
      node: await this.#readNode(disk),
      pods: await Promise.all(targets.map((target) => this.#readPod(target, disk))),
    };
    this.#rates.retain(new Set(["/", podsCgroup(settings), ...targets.flatMap(listPaths)]));
    return summary;
  }

  async #readNode(disk: DiskReading | undefined): Promise<Json> {
    const { nodeName, settings, machine } = this.#options;
    const node = this.#readCgroup("/", machine.memoryBytes);
    const pods = this.#readCgroup(podsCgroup(settings), machine.memoryBytes);
    const startTime = readBootTime();
    const swap = readSwap();
    return {
      nodeName,
      systemContainers: pods === undefined ? [] : [{ name: "pods", startTime, ...pods.figures, ...pods.swap }],
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
    const process = first ? this.#options.cgroups.listProcesses(sandbox.path)[0] : undefined;
    const volumes = disk === undefined ? [] : await this.#readVolumes(target);
    const containerStats = containers.map((each) => this.#readContainer(each.path, each.container, disk));
    return {
      podRef: { name, namespace, uid },
      startTime: pod.status?.startTime ?? formatTime(sandbox?.sandbox.createdAt ?? this.#options.clock.now()),
      containers: containerStats,
      ...own?.figures,
      ...(disk === undefined || process === undefined
        ? {}
        : { network: toNetwork(readInterfaces(process), disk.time) }),
      ...(volumes.length === 0 ? {} : { volume: volumes }),
      ...(disk === undefined ? {} : { "ephemeral-storage": { time: disk.time, ...sumUsed(disk, containers) } }),
      ...(disk === undefined ? {} : own?.swap),
    };
  }

  #readContainer(path: string, container: ObservedContainer, disk: DiskReading | undefined): Json {
    const found = this.#readCgroup(path);
    return {
      name: container.name,
      startTime: formatTime(container.startedAt),
      ...found?.figures,
      ...(disk === undefined ? {} : { rootfs: toRootFs(disk, container), logs: toLogs(disk) }),
      ...(disk === undefined ? {} : found?.swap),
    };
  }

  /** `memoryBytes`: the cgroup's limit, where it is not in its files. */
  #readCgroup(path: string, memoryBytes = this.#options.cgroups.readSpec(path).memoryBytes) {
    const usage = this.#options.cgroups.readUsage(path);
    if (usage === undefined) return undefined;
    const time = formatNanoTime(usage.timeMs);
    const { memory } = usage;
    return {
      figures: { ...this.#toCpu(path, usage, time), ...(memory && { memory: toMemory(memory, memoryBytes, time) }) },
      swap: memory === undefined ? {} : { swap: { time, swapUsageBytes: memory.swap } },
    };
  }

  #toCpu(path: string, usage: CgroupUsage, time: string): Json {
    if (usage.cpu === undefined) return {};
    const usageNanoCores = this.#rates.update(path, usage) ?? 0;
    return { cpu: { time, usageNanoCores, usageCoreNanoSeconds: usage.cpu.totalNs } };
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

  /** Volumes of claims. Others are on the node's file system. */
  async #readVolumes({ pod, namespace }: PodTarget): Promise<readonly Json[]> {
    const claims = (pod.spec?.volumes ?? []).filter((volume) => volume.persistentVolumeClaim !== undefined);
    const read = async (volume: Volume): Promise<readonly Json[]> => {
      const found = await this.#options.fileSystems.read(this.#options.volumes.path(pod, volume));
      if (found === undefined) return [];
      const pvcRef = { name: volume.persistentVolumeClaim?.claimName ?? "", namespace };
      return [{ time: this.#now(), ...found, name: volume.name, pvcRef }];
    };
    return (await Promise.all(claims.map(read))).flat();
  }

  #now(): string {
    return formatNanoTime(this.#options.clock.now());
  }
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

function toRootFs(disk: DiskReading, { id }: ObservedContainer): Json {
  const layer = disk.containers.get(id);
  const used = { usedBytes: Number(layer?.usedBytes?.value ?? 0n), inodesUsed: Number(layer?.inodesUsed?.value ?? 0n) };
  return { ...disk.images, ...used };
}

/** Logs are on the node's file system; their sizes would have to be measured file by file. */
function toLogs({ time, node }: DiskReading): Json {
  const { usedBytes: _used, inodesUsed: _inodes, ...rest } = node;
  return { time, ...rest };
}

function sumUsed(disk: DiskReading, containers: PodTarget["containers"]): Json {
  const layers = containers.map(({ container }) => disk.containers.get(container.id));
  const sum = (name: "usedBytes" | "inodesUsed"): number =>
    layers.reduce((total, layer) => total + Number(layer?.[name]?.value ?? 0n), 0);
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
  const maxima = ["pid_max", "threads-max"].flatMap((name) => readProcNumber(`/proc/sys/kernel/${name}`) ?? []);
  const [, tasks = "0"] = /^(?:\S+ ){3}\d+\/(\d+)/.exec(readProcFile("/proc/loadavg") ?? "") ?? [];
  return { time, maxpid: Math.min(...maxima), curproc: Number(tasks) };
}

function readSwap(): Json {
  const of = readMeminfo();
  return { swapAvailableBytes: of("SwapFree"), swapUsageBytes: of("SwapTotal") - of("SwapFree") };
}

/** The start of the machine. */
function readBootTime(): string {
  const seconds = Number(/^btime (\d+)$/m.exec(readProcFile("/proc/stat") ?? "")?.[1] ?? 0);
  return formatTime(seconds * 1000);
}

/** RFC 3339 with milliseconds, where the format has room for nanoseconds. */
function formatNanoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
