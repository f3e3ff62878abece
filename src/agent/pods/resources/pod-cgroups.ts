/**
 * Manages the cgroups of pods: creates them with their limits before the runtime adds containers, and removes them when
 * the pod is removed.
 */
import { rmdir } from "node:fs/promises";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type CgroupLimits, CgroupTree } from "../../cgroups/cgroup-tree.ts";
import { type SystemdSlices, toSlicePath } from "../../cgroups/systemd-slices.ts";
import { podUid } from "../pod-fields.ts";
import { type CgroupSettings, cgroupName, podCgroupParent } from "./cgroup-names.ts";
import { milliCpuToShares } from "./container-resources.ts";
import { makeHugePageLimits, makePodCgroupLimits, maxLimits, type PodLimitSettings } from "./pod-cgroup-limits.ts";
import { getPodResource } from "./pod-resources.ts";
import { getPodQosClass, type QosClass } from "./qos.ts";

export interface PodCgroupSettings extends CgroupSettings, PodLimitSettings {
  /** The share of pods' requests that pods of lower QoS classes may not use: `{ memory: "50%" }`. */
  readonly qosReserved?: Readonly<Record<string, string>>;
}

export interface PodCgroupsOptions {
  readonly tree: CgroupTree;
  readonly settings: PodCgroupSettings;
  /** All pods of the node; the sum of their requests sets the limits of their QoS class. */
  readonly pods: () => readonly Pod[];
  /** Allocatable memory of the node; undefined where no memory is reserved. */
  readonly memoryBytes?: number;
  /** Whether containers of the pod have CPUs of their own, whose time is not limited. */
  readonly isWithoutQuota?: ((pod: Pod) => boolean) | undefined;
  /** Set with the systemd driver. */
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
   * Creates the pod's cgroup, or sets its limits to the pod's current ones; with `before`, to the larger of both
   * versions. Rejects when the kernel or systemd refuses.
   */
  async apply(pod: Pod, before?: Pod): Promise<void> {
    const { settings } = this.#options;
    if (!settings.cgroupsPerQos) return;
    const current = this.#makeLimits(pod);
    const limits = before === undefined ? current : maxLimits(this.#makeLimits(before), current);
    const parent = podCgroupParent(pod, settings);
    await this.#write(parent, limits);
    const uid = podUid(pod);
    const others = this.#options.pods().filter((each) => podUid(each) !== uid);
    await this.#applyQosClasses([pod, ...others], [getPodQosClass(pod)]);
  }

  #makeLimits(pod: Pod): CgroupLimits {
    const { settings, isWithoutQuota } = this.#options;
    const limits = makePodCgroupLimits(pod, settings);
    return isWithoutQuota?.(pod) === true ? { ...limits, cpuQuotaUs: null } : limits;
  }

  /** Best effort: a cgroup that is still in use stays; it costs little. */
  async remove(uid: string): Promise<void> {
    await this.#removePod(uid);
    const { settings, pods } = this.#options;
    const burstable = cgroupPath(cgroupName("", "Burstable", settings));
    if (!settings.cgroupsPerQos || (await this.#tree.findDirectories(burstable)).length === 0) return;
    // The class keeps no share for pods that are gone.
    const left = pods().filter((each) => podUid(each) !== uid);
    await this.#applyQosClasses(left, ["Burstable"]).catch(() => undefined);
  }

  async #removePod(uid: string): Promise<void> {
    const { settings, slices } = this.#options;
    for (const parent of candidateParents(uid, settings)) {
      await slices?.remove(parent);
      await this.#tree.remove(cgroupPath(parent));
    }
  }

  /**
   * Removes the cgroups of the pods and then of the QoS classes, unless these contain other pods. Rejects at its end
   * with what could not be removed.
   */
  async removeAll(uids: Iterable<string>): Promise<void> {
    const removed = await Promise.allSettled([...uids].map((uid) => this.#removePod(uid)));
    const errors = removed.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
    await this.#removeQosCgroups();
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("; "));
  }

  async #removeQosCgroups(): Promise<void> {
    const { settings } = this.#options;
    if (settings.cgroupDriver === "systemd") return;
    for (const directory of QOS_DIRECTORIES.toReversed()) {
      for (const path of await this.#tree.findDirectories(`${settings.cgroupRoot}/kubepods/${directory}`)) {
        await rmdir(path).catch(() => undefined);
      }
    }
  }

  /** Sets the limits of QoS classes by the requests of all pods; Guaranteed pods have no common cgroup. */
  async #applyQosClasses(all: readonly Pod[], changed: readonly QosClass[]): Promise<void> {
    const { settings } = this.#options;
    const requested = (name: string, of: string): number =>
      all
        .filter((each) => getPodQosClass(each) === of)
        .reduce((sum, each) => sum + getPodResource(each, "requests", name), 0);
    const [guaranteed, burstable] = [requested("memory", "Guaranteed"), requested("memory", "Burstable")];
    const memory = this.#qosMemoryLimits(guaranteed, burstable);
    // Memory of a pod is protected as far as that of the cgroups above it.
    if (settings.memoryQos !== undefined) {
      await this.#write(cgroupName("", "Guaranteed", settings), { memoryMinBytes: guaranteed + burstable });
    }
    for (const qos of SHARED_CLASSES) {
      if (!changed.includes(qos) && memory === undefined) continue;
      await this.#write(cgroupName("", qos, settings), {
        cpuShares: milliCpuToShares(qos === "Burstable" ? requested("cpu", qos) : 0),
        ...(memory === undefined ? {} : { memoryBytes: memory[qos] }),
        ...(settings.memoryQos === undefined || qos !== "Burstable" ? {} : { memoryMinBytes: burstable }),
        ...makeHugePageLimits(settings.hugePageSizes ?? [], () => null),
      });
    }
  }

  /** Allocatable memory minus the reserved share of the requests of higher classes. */
  #qosMemoryLimits(guaranteed: number, burstable: number): Record<(typeof SHARED_CLASSES)[number], number> | undefined {
    const { settings, memoryBytes } = this.#options;
    const percent = Number.parseInt(settings.qosReserved?.memory ?? "", 10);
    if (Number.isNaN(percent) || memoryBytes === undefined) return undefined;
    const burstableLimit = memoryBytes - Math.floor((guaranteed * percent) / 100);
    return { Burstable: burstableLimit, BestEffort: burstableLimit - Math.floor((burstable * percent) / 100) };
  }

  async #write(parent: string, limits: CgroupLimits): Promise<void> {
    await applyCgroupLimits(this.#tree, this.#options.slices, parent, limits);
  }
}

/** `parent` is a path, or a systemd slice. Limits without a systemd property are written to the slice's cgroup. */
export async function applyCgroupLimits(
  tree: CgroupTree,
  slices: Pick<SystemdSlices, "apply"> | undefined,
  parent: string,
  limits: CgroupLimits,
): Promise<void> {
  if (!parent.endsWith(".slice")) await tree.create(parent);
  else await slices?.apply(parent, limits);
  await tree.setLimits(cgroupPath(parent), limits);
}

function cgroupPath(parent: string): string {
  return parent.endsWith(".slice") && !parent.startsWith("/") ? toSlicePath(parent) : parent;
}

/** Directories of the pod's cgroup: one per controller with cgroup v1, at most one with v2. */
export async function findPodCgroups(
  uid: string,
  root: string,
  hierarchy = "/sys/fs/cgroup",
): Promise<readonly string[]> {
  const tree = new CgroupTree(hierarchy);
  const settings = { cgroupDriver: "cgroupfs", cgroupRoot: root, cgroupsPerQos: true } as const;
  return (await Promise.all(candidateParents(uid, settings).map((path) => tree.findDirectories(path)))).flat();
}

/** The pod's cgroup in each QoS class. */
function candidateParents(uid: string, settings: CgroupSettings): readonly string[] {
  return (["Guaranteed", ...SHARED_CLASSES] as const).map((qos) => cgroupName(`pod${uid}`, qos, settings));
}
