/**
 * The pods' own cgroups: made with their limits before the runtime puts containers into them, and removed when nothing
 * of the pod is left.
 */
import { rmdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type CgroupLimits, CgroupTree } from "../../cgroups/cgroup-tree.ts";
import { type SystemdSlices, slicePath } from "../../cgroups/systemd-slices.ts";
import { podUid } from "../pod-fields.ts";
import { type CgroupSettings, cgroupName, milliCpuToShares, podCgroupParent } from "./container-resources.ts";
import { makeHugePageLimits, makePodCgroupLimits, maxLimits, type PodLimitSettings } from "./pod-cgroup-limits.ts";
import { getPodResource } from "./pod-resources.ts";
import { getPodQosClass } from "./qos.ts";

export interface PodCgroupSettings extends CgroupSettings, PodLimitSettings {
  /** The share of what pods ask for that pods of lesser classes may not use: `{ memory: "50%" }`. */
  readonly qosReserved?: Readonly<Record<string, string>>;
}

export interface PodCgroupsOptions {
  readonly tree: CgroupTree;
  readonly settings: PodCgroupSettings;
  /** All pods of the node; what they ask for together is what their class as a whole gets. */
  readonly pods: () => readonly Pod[];
  /** What pods may have together; undefined where nothing is set apart. */
  readonly memoryBytes?: number;
  /** With the systemd driver. */
  readonly slices?: Pick<SystemdSlices, "apply" | "remove"> | undefined;
}

const QOS_DIRECTORIES = ["", "besteffort", "burstable"];
const SHARED_CLASSES = ["Burstable", "BestEffort"] as const;

export class PodCgroups {
  readonly #options: PodCgroupsOptions;
  readonly #tree: CgroupTree;

  constructor(options: PodCgroupsOptions) {
    this.#options = options;
    this.#tree = options.tree;
  }

  /**
   * Makes the pod's cgroup, or gives it what the pod asks for now; with `before`, enough for what it asked for before
   * too. Rejects when the kernel, or systemd, refuses.
   */
  async apply(pod: Pod, before?: Pod): Promise<void> {
    const { settings } = this.#options;
    if (!settings.cgroupsPerQos) return;
    const wanted = makePodCgroupLimits(pod, settings);
    const limits = before === undefined ? wanted : maxLimits(makePodCgroupLimits(before, settings), wanted);
    const parent = podCgroupParent(pod, settings);
    await this.#write(parent, limits);
    await this.#applyClasses(pod);
  }

  /** Best effort: a cgroup that is still in use stays, and costs little. */
  async remove(uid: string): Promise<void> {
    const { settings, slices } = this.#options;
    for (const parent of candidateParents(uid, settings)) {
      await slices?.remove(parent);
      await this.#tree.remove(cgroupPath(parent));
    }
  }

  /** The pods', and then those that held them, unless somebody else's pods are in there. */
  async removeAll(uids: Iterable<string>): Promise<void> {
    for (const uid of uids) await this.remove(uid);
    const { settings } = this.#options;
    if (settings.cgroupDriver === "systemd") return;
    for (const tier of QOS_DIRECTORIES.toReversed()) {
      for (const path of await this.#tree.directories(`${settings.cgroupRoot}/kubepods/${tier}`)) {
        await rmdir(path).catch(() => undefined);
      }
    }
  }

  /** Pods of one class have something together; those that are guaranteed what they ask for share nothing. */
  async #applyClasses(pod: Pod): Promise<void> {
    const { settings } = this.#options;
    const uid = podUid(pod);
    const all = [pod, ...this.#options.pods().filter((each) => podUid(each) !== uid)];
    const asked = (name: string, of: string): number =>
      all
        .filter((each) => getPodQosClass(each) === of)
        .reduce((sum, each) => sum + getPodResource(each, "requests", name), 0);
    const memory = this.#memoryOfClasses(asked("memory", "Guaranteed"), asked("memory", "Burstable"));
    const own = getPodQosClass(pod);
    for (const tier of SHARED_CLASSES) {
      if (tier !== own && memory === undefined) continue;
      await this.#write(cgroupName("", tier, settings), {
        cpuShares: milliCpuToShares(tier === "Burstable" ? asked("cpu", tier) : 0),
        ...(memory === undefined ? {} : { memoryBytes: memory[tier] }),
        ...makeHugePageLimits(settings.hugePageSizes ?? [], () => null),
      });
    }
  }

  /** Less what is set apart for those that come before them. */
  #memoryOfClasses(guaranteed: number, burstable: number): Record<(typeof SHARED_CLASSES)[number], number> | undefined {
    const { settings, memoryBytes } = this.#options;
    const percent = Number.parseInt(settings.qosReserved?.memory ?? "", 10);
    if (Number.isNaN(percent) || memoryBytes === undefined) return undefined;
    const ofBurstable = memoryBytes - Math.floor((guaranteed * percent) / 100);
    return { Burstable: ofBurstable, BestEffort: ofBurstable - Math.floor((burstable * percent) / 100) };
  }

  async #write(parent: string, limits: CgroupLimits): Promise<void> {
    await applyCgroupLimits(this.#tree, this.#options.slices, parent, limits);
  }
}

/** `parent` is a path, or a systemd slice. What systemd has no word for is written where it put the slice. */
export async function applyCgroupLimits(
  tree: CgroupTree,
  slices: Pick<SystemdSlices, "apply"> | undefined,
  parent: string,
  limits: CgroupLimits,
): Promise<void> {
  if (!parent.endsWith(".slice")) await tree.make(parent);
  else await slices?.apply(parent, limits);
  await tree.limit(cgroupPath(parent), limits);
}

function cgroupPath(parent: string): string {
  return parent.endsWith(".slice") && !parent.startsWith("/") ? slicePath(parent) : parent;
}

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function findPodCgroups(
  uid: string,
  root: string,
  hierarchy = "/sys/fs/cgroup",
): Promise<readonly string[]> {
  const tree = new CgroupTree(hierarchy);
  const settings = { cgroupDriver: "cgroupfs", cgroupRoot: root, cgroupsPerQos: true } as const;
  return (await Promise.all(candidateParents(uid, settings).map((path) => tree.directories(path)))).flat();
}

/** Where the pod may be, whatever its class. */
function candidateParents(uid: string, settings: CgroupSettings): readonly string[] {
  return (["Guaranteed", ...SHARED_CLASSES] as const).map((tier) => cgroupName(`pod${uid}`, tier, settings));
}
