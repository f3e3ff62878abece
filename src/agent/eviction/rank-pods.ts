/** The order in which pods are evicted for a signal, as Kubernetes ranks them. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { podUid } from "../pods/pod-fields.ts";
import { getPodResource } from "../pods/resources/pod-resources.ts";
import type { DirectorySize } from "../stats/directory-sizes.ts";
import { addSizes, type PodUsage, type PodUsages } from "./pod-usage.ts";
import { type FileSystemLayout, type Signal, signals } from "./signals.ts";

type DiskPart = "root" | "logs" | "volumes";

interface RankedPod<T> {
  readonly item: T;
  readonly usage: PodUsage | undefined;
  readonly exceedsRequest: boolean;
  readonly priority: number;
  /** Usage above the request. */
  readonly excess: number;
}

/** The first one is evicted first. A pod without figures comes first, as in Kubernetes. */
export function rankPods<T extends { readonly pod: Pod }>(
  pods: readonly T[],
  usages: PodUsages,
  signal: Signal,
  layout: FileSystemLayout,
): readonly T[] {
  const ranked = pods.map((item): RankedPod<T> => {
    const usage = usages.get(podUid(item.pod));
    const priority = item.pod.spec?.priority ?? 0;
    if (usage === undefined) return { item, usage, exceedsRequest: true, priority, excess: 0 };
    return { item, usage, priority, ...compareWithRequest(item.pod, usage, signal, layout) };
  });
  return ranked.sort(compareRanked(signal === "pid.available")).map(({ item }) => item);
}

function compareWithRequest(
  pod: Pod,
  usage: PodUsage,
  signal: Signal,
  layout: FileSystemLayout,
): Pick<RankedPod<unknown>, "exceedsRequest" | "excess"> {
  const { resource } = signals[signal];
  const { used = 0, requested } = getUsage(pod, usage, signal, layout);
  switch (resource) {
    case "memory":
    case "ephemeral-storage":
      return { exceedsRequest: used > requested, excess: used - requested };
    case "pids":
      return { exceedsRequest: false, excess: used };
    case "inodes":
      // No pod can request inodes; Kubernetes subtracts the request of bytes from them all the same.
      return { exceedsRequest: used > 0, excess: used - getPodResource(pod, "requests", "ephemeral-storage") };
  }
}

/** What the pod uses and requests of the resource of the signal. */
export function getUsage(
  pod: Pod,
  usage: PodUsage | undefined,
  signal: Signal,
  layout: FileSystemLayout,
): { readonly used: number | undefined; readonly requested: number } {
  const { resource } = signals[signal];
  switch (resource) {
    case "memory":
      return { used: usage?.memory, requested: getPodResource(pod, "requests", "memory") };
    case "pids":
      return { used: usage?.processes, requested: 0 };
    case "ephemeral-storage":
      return {
        used: usage && sumParts(usage, listParts(signal, layout)).usedBytes,
        requested: getPodResource(pod, "requests", "ephemeral-storage"),
      };
    case "inodes":
      return { used: usage && sumParts(usage, listParts(signal, layout)).inodesUsed, requested: 0 };
  }
}

function compareRanked(isByPriorityFirst: boolean) {
  return (a: RankedPod<unknown>, b: RankedPod<unknown>): number => {
    const unknown = Number(a.usage !== undefined) - Number(b.usage !== undefined);
    const exceeding = Number(b.exceedsRequest) - Number(a.exceedsRequest);
    const priority = a.priority - b.priority;
    const excess = b.excess - a.excess;
    return isByPriorityFirst ? priority || unknown || excess : unknown || exceeding || priority || excess;
  };
}

/** The parts of a pod that are on the file system of the signal. */
function listParts(signal: Signal, { hasImageFs, isSplit }: FileSystemLayout): readonly DiskPart[] {
  if (!hasImageFs) return ["root", "logs", "volumes"];
  // Nothing of a pod is on a file system that has only images.
  if (isSplit) return signal.startsWith("imagefs.") ? [] : ["root", "logs", "volumes"];
  return signal.startsWith("nodefs.") ? ["logs", "volumes"] : ["root"];
}

function sumParts({ containers, volumes }: PodUsage, parts: readonly DiskPart[]): DirectorySize {
  const none: DirectorySize = { usedBytes: 0, inodesUsed: 0 };
  return containers.reduce(
    (sum, { root, logs }) =>
      [parts.includes("root") ? root : none, parts.includes("logs") ? logs : none].reduce(addSizes, sum),
    parts.includes("volumes") ? volumes : none,
  );
}
