/** Compares the ephemeral storage that pods use with their limits. */
import { join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { podLimits } from "../../../api/core/pod-spec/resources.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { formatQuantity, parseQuantity, quantityValue } from "../../../api/meta/quantity.ts";
import { type Directories, hostsFile, podLogDir } from "../../pods/directories.ts";
import { appContainers, podUid } from "../../pods/pod-fields.ts";
import { labels } from "../../runtime/observation.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import type { VolumeManager } from "../volume-manager.ts";

/** Why a pod is evicted for its use of local storage. */
export interface StorageExcess {
  /** Kubernetes' name of the limit. */
  readonly signal: "emptydirfs.limit" | "ephemeralcontainerfs.limit" | "ephemeralpodfs.limit";
  /** Kubernetes' message, with its trailing space. */
  readonly message: string;
}

export interface StorageLimitOptions {
  readonly runtime: Pick<Runtime, "listContainerStats">;
  readonly volumes: Pick<VolumeManager, "path">;
  readonly directories: Directories;
  /** Bytes on disk below a directory, or of a file. */
  readonly measureUsage: (path: string) => Promise<number>;
  /** Whether images and writable layers are not on the file system of the agent's directory. */
  readonly hasImageFs: () => Promise<boolean>;
}

/** Bytes. */
interface ContainerUsage {
  readonly layer: number;
  readonly logs: number;
}

const NAME = "ephemeral-storage";

/** Undefined for a pod within its limits. Pods without a limit are not measured. */
export async function findStorageExcess(options: StorageLimitOptions, pod: Pod): Promise<StorageExcess | undefined> {
  const limit = podLimits(pod, { includeOverhead: true }).get(NAME);
  if (limit === undefined) return undefined;
  const used = await measureContainers(options, pod);
  const { volumes, directories } = options;
  const paths = (pod.spec?.volumes ?? []).filter(isLocal).map((each) => volumes.path(pod, each));
  const others = await Promise.all(
    [...paths, hostsFile(directories, podUid(pod))].map((path) => measurePath(options, path)),
  );
  const ofContainers = [...used.values()].map(({ layer, logs }) => layer + logs);
  const total = [...ofContainers, ...others].reduce((sum, each) => sum + each, 0);
  if (total > quantityValue(limit)) {
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(limit)}. `;
    return { signal: "ephemeralpodfs.limit", message };
  }
  return await findContainerExcess(options, pod, used);
}

/** Writable layers on a file system of their own count for the pod only, as in Kubernetes. */
async function findContainerExcess(
  { hasImageFs }: StorageLimitOptions,
  pod: Pod,
  used: ReadonlyMap<string, ContainerUsage>,
): Promise<StorageExcess | undefined> {
  const countsLayers = !(await hasImageFs());
  for (const { name, resources } of appContainers(pod)) {
    const limit = parseQuantity(resources?.limits?.[NAME] ?? "0");
    const { layer = 0, logs = 0 } = used.get(name) ?? {};
    const bytes = logs + (countsLayers ? layer : 0);
    if (limit === undefined || limit.nanos === 0n || bytes <= quantityValue(limit)) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit "${formatQuantity(limit)}". `;
    return { signal: "ephemeralcontainerfs.limit", message };
  }
  return undefined;
}

async function measureContainers(options: StorageLimitOptions, pod: Pod): Promise<ReadonlyMap<string, ContainerUsage>> {
  const filter = { labelSelector: { [labels.podUid]: podUid(pod) } };
  const { stats = [] } = await options.runtime.listContainerStats({ filter });
  const layers = new Map<string, number>();
  for (const { attributes, writableLayer } of stats) {
    const name = attributes?.metadata?.name ?? "";
    layers.set(name, (layers.get(name) ?? 0) + Number(writableLayer?.usedBytes?.value ?? 0n));
  }
  const used = [...layers].map(async ([name, layer]) => {
    const logs = await measurePath(options, join(podLogDir(options.directories, pod), name));
    return [name, { layer, logs }] as const;
  });
  return new Map(await Promise.all(used));
}

/** Whether the volume is on the node's disk. */
function isLocal({ emptyDir, configMap, gitRepo }: Volume): boolean {
  return (emptyDir !== undefined && !emptyDir.medium) || configMap !== undefined || gitRepo !== undefined;
}

/** 0 for what does not exist yet or any more. */
function measurePath({ measureUsage: usage }: StorageLimitOptions, path: string): Promise<number> {
  return usage(path).catch(() => 0);
}
