/** emptyDir volumes: on disk, in memory, or in huge pages. */
import { chmod, mkdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { appContainers, initContainers } from "../../pods/pod-fields.ts";
import { getPodResource, isLimitedEverywhere } from "../../pods/resources/pod-resources.ts";
import { getPodQosClass } from "../../pods/resources/qos.ts";
import { parseUnits } from "../../pods/resources/quantities.ts";
import type { Mounter } from "../mount/mounter.ts";

const HUGE_PAGES = "HugePages";
const PREFIX = "hugepages-";

export interface EmptyDirOptions {
  readonly mounter: Mounter;
  /** What the node has for pods; 0: unknown. */
  readonly memoryBytes: number;
}

/** Creates the directory and mounts its medium. Idempotent. Resolves with whether the directory is new. */
export async function setUpEmptyDir(
  { mounter, memoryBytes }: EmptyDirOptions,
  pod: Pod,
  volume: Volume,
  directory: string,
): Promise<boolean> {
  const medium = volume.emptyDir?.medium ?? "";
  const made = await mkdir(directory, { recursive: true, mode: 0o777 });
  // mkdir applies the process's umask, chmod does not.
  if (made !== undefined) await chmod(directory, 0o777);
  const isNew = made !== undefined;
  if (medium === "" || (await isMounted(mounter, directory))) return isNew;
  if (medium === "Memory") {
    await mounter.tmpfs(directory, memoryVolumeBytes(pod, memoryBytes, volume.emptyDir?.sizeLimit));
  } else {
    await mounter.hugePages(directory, pageSize(pod, medium));
    await chmod(directory, 0o777);
  }
  return isNew;
}

export async function isMounted(mounter: Pick<Mounter, "listMountPoints">, directory: string): Promise<boolean> {
  return (await mounter.listMountPoints(directory)).includes(directory);
}

/** The smallest of sizeLimit, the pod's limit of memory and what the node has for pods. */
export function memoryVolumeBytes(pod: Pod, allocatableBytes: number, sizeLimit?: string): number {
  const isLimited = getPodQosClass(pod) !== "BestEffort" && isLimitedEverywhere(pod, "memory");
  const all = [isLimited ? getPodResource(pod, "limits", "memory") : 0, parseUnits(sizeLimit), allocatableBytes];
  const known = all.filter((each) => each > 0);
  return known.length === 0 ? 0 : Math.min(...known);
}

/** `2Mi`: from the medium (`HugePages-2Mi`), or the only size that the pod requests. */
function pageSize(pod: Pod, medium: string): string {
  const isAny = medium === HUGE_PAGES;
  const wanted = medium.slice(HUGE_PAGES.length + 1);
  if (!isAny && !medium.startsWith(`${HUGE_PAGES}-`)) throw new Error(`unknown storage medium "${medium}"`);
  const requested = new Set(
    [...initContainers(pod), ...appContainers(pod)]
      .flatMap(({ resources }) => Object.keys(resources?.requests ?? {}))
      .filter((name) => name.startsWith(PREFIX))
      .map((name) => name.slice(PREFIX.length)),
  );
  if (isAny && requested.size > 1)
    throw new Error(`medium: ${medium} can't be used if container requests multiple huge page sizes`);
  const size = isAny ? [...requested][0] : requested.has(wanted) ? wanted : undefined;
  if (size === undefined)
    throw new Error(`medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`);
  return size;
}
