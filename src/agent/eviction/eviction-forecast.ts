/** When thresholds will be met at the present rate, and which pods would be evicted then. */

import type { Pod } from "../../api/core/pod/schema.ts";
import { type Rate, secondsUntil } from "../forecast/rate-history.ts";
import { isCritical, podName, podNamespace, podUid } from "../pods/pod-fields.ts";
import type { PodUsages } from "./pod-usage.ts";
import { getUsage, rankPods } from "./rank-pods.ts";
import { type FileSystemLayout, type Observation, type PressureType, type Signal, signals } from "./signals.ts";
import { type Threshold, thresholdQuantity } from "./thresholds.ts";

export interface EvictionCandidate {
  readonly namespace: string;
  readonly name: string;
  readonly priority: number;
  /** The usage of the signal's resource; undefined when no container of the pod runs. */
  readonly used: number | undefined;
  readonly requested: number;
}

export interface SignalForecast {
  readonly signal: Signal;
  readonly condition: PressureType;
  /** Bytes, inodes or processes; likewise below. */
  readonly available: number;
  readonly capacity: number;
  /** Pods are evicted below. */
  readonly threshold: number;
  /** The grace period of a soft threshold; 0 for a hard one. */
  readonly graceSeconds: number;
  /** The change of the available amount; undefined when unknown. */
  readonly ratePerSecond: number | undefined;
  /** The time until the threshold is met: 0 when it is met already, undefined when it is not at this rate. */
  readonly inSeconds: number | undefined;
  /** What is removed before pods are evicted. */
  readonly reclaimed: readonly ("containers" | "images")[];
  /** The first ones that would be evicted, in order. */
  readonly pods: readonly EvictionCandidate[];
}

const PODS_MAX = 3;

export function forecastThreshold(
  threshold: Threshold,
  observed: Observation,
  rate: Rate | undefined,
): Omit<SignalForecast, "pods" | "reclaimed"> {
  const { signal, graceMs } = threshold;
  const { available, capacity } = observed;
  const quantity = thresholdQuantity(threshold, observed);
  // At the threshold itself it is not met.
  const inSeconds = secondsUntil(available < quantity ? 0 : available - quantity + 1, rate);
  return {
    signal,
    condition: signals[signal].condition,
    available,
    capacity,
    threshold: quantity,
    graceSeconds: graceMs / 1000,
    ratePerSecond: rate?.perSecond,
    inSeconds,
  };
}

export function listCandidates(
  pods: readonly { readonly pod: Pod }[],
  usages: PodUsages,
  signal: Signal,
  layout: FileSystemLayout,
): readonly EvictionCandidate[] {
  const evictable = pods.filter(({ pod }) => !isCritical(pod));
  return rankPods(evictable, usages, signal, layout)
    .slice(0, PODS_MAX)
    .map(({ pod }) => {
      const usage = usages.get(podUid(pod));
      const { used, requested } = getUsage(pod, usage, signal, layout);
      return {
        namespace: podNamespace(pod),
        name: podName(pod),
        priority: pod.spec?.priority ?? 0,
        used,
        requested,
      };
    });
}
