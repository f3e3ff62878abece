/** How many replicas a metric needs. Amounts are in thousandths. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { isPodReady } from "../workload/active-pods.ts";
import { type MetricsOfPods, milli } from "./metrics-client.ts";

/** The deviation from the target that changes nothing, as a fraction. */
export interface Tolerances {
  readonly scaleDown: number;
  readonly scaleUp: number;
}

export interface PodGroupingOptions {
  readonly now: number;
  readonly cpuInitializationPeriodMs: number;
  readonly initialReadinessDelayMs: number;
}

export interface PodGroups {
  /** Pods whose metrics count. */
  readonly ready: number;
  readonly unready: readonly string[];
  readonly missing: readonly string[];
  /** Of the pods that count. */
  readonly values: ReadonlyMap<string, number>;
}

export interface Proposal {
  readonly replicas: number;
  /** The average of the pods. */
  readonly usage: number;
  /** In percent of the requests. */
  readonly utilization?: number;
}

/** Pods that are being deleted or have failed are ignored; those that start have no meaningful CPU usage. */
export function groupPods(
  pods: readonly Pod[],
  metrics: MetricsOfPods,
  resource: string,
  options: PodGroupingOptions,
): PodGroups {
  const values = new Map([...metrics].map(([name, { value }]) => [name, value]));
  const unready: string[] = [];
  const missing: string[] = [];
  let ready = 0;
  for (const pod of pods) {
    const { name = "", deletionTimestamp } = pod.metadata ?? {};
    if (deletionTimestamp !== undefined || pod.status?.phase === "Failed") values.delete(name);
    else if (pod.status?.phase === "Pending") unready.push(name);
    else if (!metrics.has(name)) missing.push(name);
    else if (resource === "cpu" && isStarting(pod, metrics, options)) unready.push(name);
    else ready++;
  }
  for (const name of unready) values.delete(name);
  if (values.size === 0) throw new Error("did not receive metrics for targeted pods (pods might be unready)");
  return { ready, unready, missing, values };
}

function isStarting(
  { metadata, status }: Pod,
  metrics: MetricsOfPods,
  { now, cpuInitializationPeriodMs, initialReadinessDelayMs }: PodGroupingOptions,
): boolean {
  const condition = status?.conditions?.find(({ type }) => type === "Ready");
  if (condition === undefined || status?.startTime === undefined) return true;
  const startedAt = Date.parse(status.startTime);
  const changedAt = condition.lastTransitionTime === undefined ? 0 : Date.parse(condition.lastTransitionTime);
  const isUnready = condition.status === "False";
  if (startedAt + cpuInitializationPeriodMs > now) {
    const metric = metrics.get(metadata?.name ?? "");
    return isUnready || (metric !== undefined && metric.at < changedAt + metric.windowMs);
  }
  // It has never been ready.
  return isUnready && startedAt + initialReadinessDelayMs > changedAt;
}

/** The sum of the requests of each pod, or of one container of each. Throws if a container has no request. */
export function podRequests(pods: readonly Pod[], resource: string, container: string | undefined) {
  return new Map(
    pods.map(({ metadata, spec }) => {
      const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
      const counted = [...(spec?.containers ?? []), ...sidecars].filter(
        ({ name }) => container === undefined || container === name,
      );
      const sum = counted.reduce((total, { name, resources }) => {
        const request = resources?.requests?.[resource];
        if (request === undefined) {
          throw new Error(`missing request for ${resource} in container ${name} of Pod ${metadata?.name}`);
        }
        return total + milli(request);
      }, 0);
      return [metadata?.name ?? "", sum] as const;
    }),
  );
}

/** For a target in percent of the requests. */
export function proposeByUtilization(
  current: number,
  target: number,
  groups: PodGroups,
  requests: ReadonlyMap<string, number>,
  tolerances: Tolerances,
): Proposal {
  const measure = (values: ReadonlyMap<string, number>) => utilizationOf(values, requests, target);
  // In a scale down a pod without metrics counts as if it used all that it requested.
  const assumed = (name: string): number => Math.trunc(((requests.get(name) ?? 0) * Math.max(100, target)) / 100);
  const { ratio, utilization, usage } = measure(groups.values);
  const replicas = propose(current, groups, ratio, assumed, (values) => measure(values).ratio, tolerances);
  return { replicas, usage, utilization };
}

function utilizationOf(values: ReadonlyMap<string, number>, requests: ReadonlyMap<string, number>, target: number) {
  const known = [...values].filter(([name]) => requests.has(name));
  const total = known.reduce((sum, [, value]) => sum + value, 0);
  const requested = known.reduce((sum, [name]) => sum + (requests.get(name) ?? 0), 0);
  if (requested === 0) throw new Error("no metrics returned matched known pods");
  const utilization = Math.trunc((total * 100) / requested);
  return { ratio: utilization / target, utilization, usage: Math.trunc(total / known.length) };
}

/** For a target amount per pod. */
export function proposeByUsage(current: number, target: number, groups: PodGroups, tolerances: Tolerances): Proposal {
  const average = (values: ReadonlyMap<string, number>): number =>
    Math.trunc([...values.values()].reduce((sum, value) => sum + value, 0) / values.size);
  const usage = average(groups.values);
  const ratioOf = (values: ReadonlyMap<string, number>): number => average(values) / target;
  return { replicas: propose(current, groups, usage / target, () => target, ratioOf, tolerances), usage };
}

/** Assumes the values of pods without metrics so that they weaken the change. */
function propose(
  current: number,
  { ready, unready, missing, values }: PodGroups,
  ratio: number,
  assumed: (name: string) => number,
  ratioOf: (values: ReadonlyMap<string, number>) => number,
  tolerances: Tolerances,
): number {
  const isScaleUp = ratio > 1;
  const countsUnready = unready.length > 0 && isScaleUp;
  if (!countsUnready && missing.length === 0) {
    return isWithin(ratio, tolerances) ? current : Math.ceil(ratio * ready);
  }
  const all = new Map(values);
  if (ratio !== 1) for (const name of missing) all.set(name, isScaleUp ? 0 : assumed(name));
  if (countsUnready) for (const name of unready) all.set(name, 0);
  const next = ratioOf(all);
  const isReversed = (ratio < 1 && next > 1) || (ratio > 1 && next < 1);
  if (isWithin(next, tolerances) || isReversed) return current;
  const replicas = Math.ceil(next * all.size);
  return (next < 1 && replicas > current) || (next > 1 && replicas < current) ? current : replicas;
}

export function isWithin(ratio: number, { scaleDown, scaleUp }: Tolerances): boolean {
  return 1 - scaleDown <= ratio && ratio <= 1 + scaleUp;
}

/** For a metric that describes no pod: its value relative to the target scales the ready pods. */
export function proposeByRatio(current: number, ratio: number, pods: readonly Pod[], tolerances: Tolerances): number {
  if (current === 0) return Math.ceil(ratio);
  if (isWithin(ratio, tolerances)) return current;
  if (pods.length === 0) {
    throw new Error("unable to calculate ready pods: no pods returned by selector while calculating replica count");
  }
  const ready = pods.filter((pod) => pod.status?.phase === "Running" && isPodReady(pod)).length;
  return Math.ceil(ratio * ready);
}

/** For a metric whose value is divided by the number of replicas. */
export function proposePerPod(replicas: number, value: number, target: number, tolerances: Tolerances): Proposal {
  const ratio = value / (target * replicas);
  return {
    replicas: isWithin(ratio, tolerances) ? replicas : Math.ceil(value / target),
    // The conversion of an infinite quotient in Go, while the target has no replicas yet.
    usage: replicas === 0 ? Number(-(2n ** 63n)) : Math.ceil(value / replicas),
  };
}
