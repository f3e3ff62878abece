/** The metrics of extension points and plugins, with Kubernetes' names. */
import { exponentialBuckets } from "../../std/metrics/buckets.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { type Clock, systemClock } from "../../std/time/clock.ts";
import type { NodeRejections } from "./plugin.ts";
import type { Rejection } from "./rejection.ts";

export type MeasuredPoint =
  | "PreFilter"
  | "Filter"
  | "PostFilter"
  | "PreScore"
  | "Score"
  | "Reserve"
  | "Unreserve"
  | "PreBind"
  | "Bind";

/** As in Kubernetes, the times of single plugins are measured for one of ten pods. */
const SAMPLED = 10;

export class FrameworkMetrics {
  readonly #clock: Clock;
  readonly #points;
  readonly #executions;
  readonly #evaluations;
  readonly #hints;
  #cycles = 0;

  constructor(registry = new MetricRegistry(), clock: Clock = systemClock) {
    this.#clock = clock;
    this.#points = registry.histogram(
      {
        name: "scheduler_framework_extension_point_duration_seconds",
        help: "How long all plugins of an extension point take.",
        stability: "STABLE",
        labels: ["extension_point", "status", "profile"],
      },
      exponentialBuckets(0.0001, 2, 12),
    );
    this.#executions = registry.histogram(
      {
        name: "scheduler_plugin_execution_duration_seconds",
        help: "How long a plugin takes at an extension point.",
        stability: "ALPHA",
        labels: ["plugin", "extension_point", "status"],
      },
      exponentialBuckets(0.00001, 1.5, 20),
    );
    this.#evaluations = registry.counter({
      name: "scheduler_plugin_evaluation_total",
      help: "Calls of plugins at PreFilter, Filter, PreScore and Score.",
      stability: "ALPHA",
      labels: ["plugin", "extension_point", "profile"],
    });
    this.#hints = registry.histogram(
      {
        name: "scheduler_queueing_hint_execution_duration_seconds",
        help: "How long the hint of a plugin takes that decides whether an event concerns a pod.",
        stability: "ALPHA",
        labels: ["plugin", "event", "hint"],
      },
      exponentialBuckets(0.00001, 1.5, 20),
    );
  }

  /** The cycle of another pod begins. */
  beginCycle(): void {
    this.#cycles++;
  }

  now(): number {
    return this.#clock.monotonic();
  }

  /** `beganAt`: the result of `now` at the beginning. */
  recordPoint(point: MeasuredPoint, profile: string, rejection: Rejection | undefined, beganAt: number): void {
    this.#points.with(point, statusOf(rejection), profile).observe((this.now() - beganAt) / 1000);
  }

  /** Runs a plugin, and measures it for some pods. `rejectionOf` the result is its status. */
  run<T>(point: MeasuredPoint, plugin: string, call: () => T, rejectionOf: (result: T) => Rejection | undefined): T {
    if (this.#cycles % SAMPLED !== 0) return call();
    const beganAt = this.now();
    const result = call();
    this.#executions.with(plugin, point, statusOf(rejectionOf(result))).observe((this.now() - beganAt) / 1000);
    return result;
  }

  /** The same for a plugin with requests. */
  async runAsync<T>(
    point: MeasuredPoint,
    plugin: string,
    call: () => Promise<T>,
    rejectionOf: (result: T) => Rejection | undefined,
  ): Promise<T> {
    if (this.#cycles % SAMPLED !== 0) return await call();
    const beganAt = this.now();
    const result = await call();
    this.#executions.with(plugin, point, statusOf(rejectionOf(result))).observe((this.now() - beganAt) / 1000);
    return result;
  }

  recordEvaluations(point: MeasuredPoint, plugin: string, profile: string, count = 1): void {
    if (count > 0) this.#evaluations.with(plugin, point, profile).inc(count);
  }

  /** Filters stop at the first rejection, so that a plugin is called for the nodes that those before passed. */
  recordFilterEvaluations(
    plugins: Iterable<string>,
    profile: string,
    feasible: number,
    { byNode }: NodeRejections,
  ): void {
    const rejected = new Map<string, number>();
    for (const { plugin } of byNode.values()) rejected.set(plugin, (rejected.get(plugin) ?? 0) + 1);
    let left = feasible + byNode.size;
    for (const plugin of plugins) {
      this.recordEvaluations("Filter", plugin, profile, left);
      left -= rejected.get(plugin) ?? 0;
    }
  }

  measureHint(plugin: string, event: string, call: () => boolean): boolean {
    const beganAt = this.now();
    const isConcerned = call();
    this.#hints.with(plugin, event, isConcerned ? "Queue" : "QueueSkip").observe((this.now() - beganAt) / 1000);
    return isConcerned;
  }
}

function statusOf(rejection: Rejection | undefined): string {
  return rejection?.code ?? "Success";
}
