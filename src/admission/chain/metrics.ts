/** Kubernetes' metrics of admission: durations and rejections of plugins, webhooks and match conditions. */

import type { Histogram, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Operation } from "./attributes.ts";

/** Records the duration of a step, in milliseconds, by its result. */
export interface DurationObserver {
  admitted(milliseconds: number): void;
  rejected(milliseconds: number): void;
}

export const noopObserver: DurationObserver = { admitted() {}, rejected() {} };

export type StepType = "admit" | "validate";

const SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const CONDITION_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const WEBHOOK_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25];

export class AdmissionMetrics {
  readonly #clock: Clock;
  readonly #steps: HistogramFamily;
  readonly #plugins: HistogramFamily;

  constructor(registry: MetricRegistry, clock: Clock) {
    this.#clock = clock;
    const stability = "STABLE" as const;
    this.#steps = registry.histogram(
      {
        name: "apiserver_admission_step_admission_duration_seconds",
        help: "How long all admission plugins together took, in seconds, by operation, type and whether the request was rejected.",
        stability,
        labels: ["type", "operation", "rejected"],
      },
      SECONDS,
    );
    this.#plugins = registry.histogram(
      {
        name: "apiserver_admission_controller_admission_duration_seconds",
        help: "How long each admission plugin took, in seconds, by operation, type and whether the request was rejected.",
        stability,
        labels: ["name", "type", "operation", "rejected"],
      },
      SECONDS,
    );
  }

  /** The clock that measures the durations recorded here. */
  get clock(): Clock {
    return this.#clock;
  }

  /** All plugins of one phase together. */
  step(type: StepType, operation: Operation): DurationObserver {
    return durationObserver((rejected) => this.#steps.with(type, operation, rejected));
  }

  plugin(name: string, type: StepType, operation: Operation): DurationObserver {
    return durationObserver((rejected) => this.#plugins.with(name, type, operation, rejected));
  }
}

/** The series of rejections is looked up on each use, since rejections are rare. */
function durationObserver(seriesOf: (rejected: "true" | "false") => Histogram): DurationObserver {
  const admitted = seriesOf("false");
  return {
    admitted: (milliseconds) => admitted.observe(milliseconds / 1000),
    rejected: (milliseconds) => seriesOf("true").observe(milliseconds / 1000),
  };
}

/** Calls of webhooks. `type` is `admit` for mutating webhooks and `validating` for validating ones. */
export class WebhookMetrics {
  static readonly #instances = new WeakMap<MetricRegistry, WebhookMetrics>();

  /** The instance of this registry: both webhook plugins share it. */
  static of(registry: MetricRegistry): WebhookMetrics {
    let metrics = WebhookMetrics.#instances.get(registry);
    if (metrics === undefined) {
      metrics = new WebhookMetrics(registry);
      WebhookMetrics.#instances.set(registry, metrics);
    }
    return metrics;
  }

  readonly duration: HistogramFamily;
  readonly rejections;
  readonly failedOpen;
  readonly requests;
  readonly conditions: ConditionMetrics;

  constructor(registry: MetricRegistry) {
    this.duration = registry.histogram(
      {
        name: "apiserver_admission_webhook_admission_duration_seconds",
        help: "How long each admission webhook took, in seconds, by operation, type and whether the request was rejected.",
        stability: "STABLE",
        labels: ["name", "type", "operation", "rejected"],
      },
      WEBHOOK_SECONDS,
    );
    this.rejections = registry.counter({
      name: "apiserver_admission_webhook_rejection_count",
      help: "Requests that each admission webhook rejected, by type of error and response code.",
      stability: "ALPHA",
      labels: ["name", "type", "operation", "error_type", "rejection_code"],
    });
    this.failedOpen = registry.counter({
      name: "apiserver_admission_webhook_fail_open_count",
      help: "Requests that were admitted because calling an admission webhook failed.",
      stability: "ALPHA",
      labels: ["name", "type"],
    });
    this.requests = registry.counter({
      name: "apiserver_admission_webhook_request_total",
      help: "Requests to each admission webhook, by response code.",
      stability: "ALPHA",
      labels: ["name", "type", "operation", "code", "rejected"],
    });
    this.conditions = ConditionMetrics.of(registry);
  }
}

/** Evaluations of match conditions. */
export class ConditionMetrics {
  static readonly #instances = new WeakMap<MetricRegistry, ConditionMetrics>();

  /** The instance of this registry: webhooks and policies share it. */
  static of(registry: MetricRegistry): ConditionMetrics {
    let metrics = ConditionMetrics.#instances.get(registry);
    if (metrics === undefined) {
      metrics = new ConditionMetrics(registry);
      ConditionMetrics.#instances.set(registry, metrics);
    }
    return metrics;
  }

  readonly #errors;
  readonly #exclusions;
  readonly #seconds: HistogramFamily;

  constructor(registry: MetricRegistry) {
    const family = (name: string, help: string) => ({
      name: `apiserver_admission_match_condition_${name}`,
      help,
      stability: "ALPHA" as const,
      labels: ["name", "kind", "type", "operation"],
    });
    this.#errors = registry.counter(
      family("evaluation_errors_total", "Requests for which the match conditions failed to evaluate."),
    );
    this.#exclusions = registry.counter(family("exclusions_total", "Requests that the match conditions excluded."));
    this.#seconds = registry.histogram(
      family("evaluation_seconds", "How long match conditions took to evaluate, in seconds."),
      CONDITION_SECONDS,
    );
  }

  /** `type` is `admit` for mutating webhooks, `validating` for validating ones and `validate` for policies. */
  observe(
    { name, kind, type, operation }: Readonly<Record<"name" | "kind" | "type" | "operation", string>>,
    result: "matched" | "excluded" | "failed",
    milliseconds: number,
  ): void {
    const values = [name, kind, type, operation];
    this.#seconds.with(...values).observe(milliseconds / 1000);
    if (result === "failed") this.#errors.with(...values).inc();
    if (result === "excluded") this.#exclusions.with(...values).inc();
  }
}
