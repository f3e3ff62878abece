/** What pods use of the resource that the node lacks: measured only when pods are ranked. */
import { join } from "node:path";
import type { Volume } from "../../api/core/volume/schema.ts";
import { type Directories, podLogDir } from "../pods/directories.ts";
import { podUid } from "../pods/pod-fields.ts";
import type { CgroupSettings } from "../pods/resources/cgroup-names.ts";
import type { ContainerStats } from "../runtime/cri/stats.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { CgroupReader } from "../stats/cgroup-reader.ts";
import { type DirectorySize, measureDirectory } from "../stats/directory-sizes.ts";
import { listPodTargets, type PodTarget, type StatsPod } from "../stats/stats-targets.ts";
import type { VolumeManager } from "../volumes/volume-manager.ts";
import type { StarvedResource } from "./signals.ts";

export interface ContainerUsage {
  readonly name: string;
  /** Working set in bytes. */
  readonly memory: number;
  /** Writable layer. */
  readonly root: DirectorySize;
  readonly logs: DirectorySize;
}

export interface PodUsage {
  /** Working set in bytes. */
  readonly memory: number;
  readonly processes: number;
  readonly containers: readonly ContainerUsage[];
  /** The sum of the volumes on the node's disk. */
  readonly volumes: DirectorySize;
}

/** By uid. A pod of which nothing runs is absent. */
export type PodUsages = ReadonlyMap<string, PodUsage>;

export interface PodUsageOptions {
  readonly settings: CgroupSettings;
  readonly cgroups: Pick<CgroupReader, "readResources" | "readUsage" | "listChildren">;
  readonly runtime: Pick<Runtime, "listContainerStats">;
  readonly volumes: Pick<VolumeManager, "path">;
  readonly directories: Directories;
  /** Replaces the machine's. */
  readonly measure?: ((directory: string) => Promise<DirectorySize>) | undefined;
}

const nothing: DirectorySize = { usedBytes: 0, inodesUsed: 0 };

/** Rejects when the runtime does, which is called only for disks and where pods have no cgroups. */
export async function measurePods(
  options: PodUsageOptions,
  pods: readonly StatsPod[],
  resource: StarvedResource,
): Promise<PodUsages> {
  const isDisk = resource === "ephemeral-storage" || resource === "inodes";
  const { settings, cgroups } = options;
  const targets = new Map(listPodTargets(pods, settings, cgroups).map((target) => [target.uid, target]));
  const stats = isDisk || !settings.cgroupsPerQos ? await listStats(options) : new Map<string, ContainerStats>();
  const found = new Map<string, PodUsage>();
  for (const each of pods) {
    const { sandboxes, containers } = each.observation;
    if (!sandboxes.some(({ ready }) => ready) && !containers.some(({ state }) => state === "running")) continue;
    found.set(podUid(each.pod), await measurePod(options, each, targets.get(podUid(each.pod)), stats, isDisk));
  }
  return found;
}

async function measurePod(
  options: PodUsageOptions,
  { pod, observation }: StatsPod,
  target: PodTarget | undefined,
  stats: ReadonlyMap<string, ContainerStats>,
  isDisk: boolean,
): Promise<PodUsage> {
  const { cgroups, directories } = options;
  const running = observation.containers.filter(({ state }) => state === "running");
  const containers = await Promise.all(
    running.map(async ({ id, name }): Promise<ContainerUsage> => {
      const path = target?.containers.find(({ container }) => container.id === id)?.path;
      const reported = stats.get(id);
      const own = path === undefined ? undefined : cgroups.readResources(path)?.workingSet;
      return {
        name,
        memory: own ?? Number(reported?.memory?.workingSetBytes?.value ?? 0n),
        root: toSize(reported),
        logs: isDisk ? await measure(options, join(podLogDir(directories, pod), name)) : nothing,
      };
    }),
  );
  const own = target && cgroups.readUsage(target.path);
  const volumes = isDisk
    ? await Promise.all(
        (pod.spec?.volumes ?? []).filter(isOnDisk).map((each) => measure(options, options.volumes.path(pod, each))),
      )
    : [];
  return {
    memory: own?.memory?.workingSet ?? containers.reduce((sum, { memory }) => sum + memory, 0),
    processes: own?.threads ?? 0,
    containers,
    volumes: volumes.reduce(addSizes, nothing),
  };
}

async function listStats({ runtime }: PodUsageOptions): Promise<ReadonlyMap<string, ContainerStats>> {
  const { stats = [] } = await runtime.listContainerStats({});
  return new Map(stats.map((each) => [each.attributes?.id ?? "", each]));
}

function toSize(stats: ContainerStats | undefined): DirectorySize {
  const layer = stats?.writableLayer;
  return { usedBytes: Number(layer?.usedBytes?.value ?? 0n), inodesUsed: Number(layer?.inodesUsed?.value ?? 0n) };
}

/** 0 for a directory that does not exist. */
function measure({ measure: run = measureDirectory }: PodUsageOptions, path: string): Promise<DirectorySize> {
  return run(path).catch(() => nothing);
}

export function addSizes(a: DirectorySize, b: DirectorySize): DirectorySize {
  return { usedBytes: a.usedBytes + b.usedBytes, inodesUsed: a.inodesUsed + b.inodesUsed };
}

/** The volumes that Kubernetes counts as local. */
function isOnDisk({ emptyDir, configMap, gitRepo }: Volume): boolean {
  return (emptyDir !== undefined && !emptyDir.medium) || configMap !== undefined || gitRepo !== undefined;
}
