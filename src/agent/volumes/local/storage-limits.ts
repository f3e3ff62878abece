/** Compares the ephemeral storage that pods use with their limits. */
import { join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { type Directories, podLogDir } from "../../pods/directories.ts";
import { allContainers, appContainers, podUid } from "../../pods/pod-fields.ts";
import { getPodResource } from "../../pods/resources/pod-resources.ts";
import { parseUnits } from "../../pods/resources/quantities.ts";
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
  /** Bytes on disk below a directory. */
  readonly measureUsage: (directory: string) => Promise<number>;
}

const NAME = "ephemeral-storage";

/** Undefined for a pod within its limits. Pods without a limit are not measured. */
export async function findStorageExcess(options: StorageLimitOptions, pod: Pod): Promise<StorageExcess | undefined> {
  const limitOf = (resources: { readonly limits?: Readonly<Record<string, string>> | undefined } | undefined) =>
    resources?.limits?.[NAME];
  const limits = allContainers(pod).flatMap(({ spec }) => limitOf(spec.resources) ?? []);
  if (limits.length === 0) return undefined;
  const used = await measureContainers(options, pod);
  const volumes = await Promise.all(
    (pod.spec?.volumes ?? []).filter(isLocal).map((each) => measureVolume(options, pod, each)),
  );
  const total = [...used.values(), ...volumes].reduce((sum, each) => sum + each, 0);
  const limit = getPodResource(pod, "limits", NAME);
  if (limit > 0 && total > limit) {
    const text = limits.length === 1 ? limits[0] : formatBinary(limit);
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${text}. `;
    return { signal: "ephemeralpodfs.limit", message };
  }
  const over = appContainers(pod).find(({ name, resources }) => {
    const own = parseUnits(limitOf(resources));
    return own > 0 && (used.get(name) ?? 0) > own;
  });
  if (over === undefined) return undefined;
  const message = `Container ${over.name} exceeded its local ephemeral storage limit "${limitOf(over.resources)}". `;
  return { signal: "ephemeralcontainerfs.limit", message };
}

/** Bytes of the writable layer and logs, by container. */
async function measureContainers(options: StorageLimitOptions, pod: Pod): Promise<ReadonlyMap<string, number>> {
  const filter = { labelSelector: { [labels.podUid]: podUid(pod) } };
  const { stats = [] } = await options.runtime.listContainerStats({ filter });
  const used = new Map<string, number>();
  for (const { attributes, writableLayer } of stats) {
    const name = attributes?.metadata?.name ?? "";
    used.set(name, (used.get(name) ?? 0) + Number(writableLayer?.usedBytes?.value ?? 0n));
  }
  for (const name of used.keys()) {
    const logs = await options.measureUsage(join(podLogDir(options.directories, pod), name)).catch(() => 0);
    used.set(name, (used.get(name) ?? 0) + logs);
  }
  return used;
}

/** Whether the volume is on the node's disk. */
function isLocal({ emptyDir, configMap, downwardAPI }: Volume): boolean {
  return (emptyDir !== undefined && !emptyDir.medium) || configMap !== undefined || downwardAPI !== undefined;
}

/** 0 for a volume that does not exist yet or any more. */
function measureVolume(
  { volumes, measureUsage: usage }: StorageLimitOptions,
  pod: Pod,
  volume: Volume,
): Promise<number> {
  return usage(volumes.path(pod, volume)).catch(() => 0);
}

function formatBinary(amount: number): string {
  const units = ["", "Ki", "Mi", "Gi", "Ti"];
  let unit = 0;
  let rest = amount;
  for (; rest % 1024 === 0 && unit < units.length - 1; unit++) rest /= 1024;
  return `${rest}${units[unit]}`;
}
