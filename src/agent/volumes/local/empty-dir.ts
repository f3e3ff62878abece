/** emptyDir volumes: on disk, in memory, or in huge pages. */
import { chmod, mkdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { appContainers, initContainers } from "../../pods/pod-fields.ts";
import { parseUnits } from "../../pods/resources/quantities.ts";
import type { Mounter } from "../mount/mounter.ts";

const HUGE_PAGES = "HugePages";
const PREFIX = "hugepages-";

/** Creates the directory and mounts its medium. Idempotent. Resolves with whether the directory is new. */
export async function setUpEmptyDir(mounter: Mounter, pod: Pod, volume: Volume, directory: string): Promise<boolean> {
  const medium = volume.emptyDir?.medium ?? "";
  const made = await mkdir(directory, { recursive: true, mode: 0o777 });
  // mkdir applies the process's umask, chmod does not.
  if (made !== undefined) await chmod(directory, 0o777);
  const isNew = made !== undefined;
  if (medium === "" || (await isMounted(mounter, directory))) return isNew;
  if (medium === "Memory") {
    await mounter.tmpfs(directory, memorySize(pod, volume));
  } else {
    await mounter.hugePages(directory, pageSize(pod, medium));
    await chmod(directory, 0o777);
  }
  return isNew;
}

export async function isMounted(mounter: Mounter, directory: string): Promise<boolean> {
  return (await mounter.listMountPoints(directory)).includes(directory);
}

/** The smaller of sizeLimit and the memory limits of the containers; 0: the kernel's default. */
function memorySize(pod: Pod, volume: Volume): number {
  const own = parseUnits(volume.emptyDir?.sizeLimit);
  const limits = appContainers(pod).map((container) => parseUnits(container.resources?.limits?.memory));
  const whole = limits.includes(0) ? 0 : limits.reduce((sum, each) => sum + each, 0);
  return own > 0 && whole > 0 ? Math.min(own, whole) : Math.max(own, whole);
}

/** `2Mi`: from the medium (`HugePages-2Mi`), or the only size that the pod requests. */
function pageSize(pod: Pod, medium: string): string {
  if (medium.startsWith(`${HUGE_PAGES}-`)) return medium.slice(HUGE_PAGES.length + 1);
  if (medium !== HUGE_PAGES) throw new Error(`unknown storage medium "${medium}"`);
  const containers = [...initContainers(pod), ...appContainers(pod)];
  const requested = containers.flatMap(({ resources }) => Object.keys(resources?.requests ?? {}));
  const [size, ...others] = new Set(requested.filter((name) => name.startsWith(PREFIX)));
  if (size === undefined) throw new Error(`medium "${HUGE_PAGES}" needs a container that requests huge pages`);
  if (others.length > 0)
    throw new Error(`medium "${HUGE_PAGES}" needs one page size, and the containers request several`);
  return size.slice(PREFIX.length);
}
