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
        help:
          "Admission sub-step latency histogram in seconds, broken out for each operation and API " +
          "resource and step type (validate or admit).",
        stability,
        labels: ["type", "operation", "rejected"],
      },
      SECONDS,
    );
    this.#plugins = registry.histogram(
      {
        name: "apiserver_admission_controller_admission_duration_seconds",
        help:
          "Admission controller latency histogram in seconds, identified by name and broken out for " +
          "each operation and API resource and type (validate or admit).",
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
        help:
          "Admission webhook latency histogram in seconds, identified by name and broken out for " +
          "each operation and API resource and type (validate or admit).",
        stability: "STABLE",
        labels: ["name", "type", "operation", "rejected"],
      },
      WEBHOOK_SECONDS,
    );
    this.rejections = registry.counter({
      name: "apiserver_admission_webhook_rejection_count",
      help:
        "Admission webhook rejection count, identified by name and broken out for each admission " +
        "type (validating or admit) and operation. Additional labels specify an error type " +
        "(calling_webhook_error or apiserver_internal_error if an error occurred; no_error " +
        "otherwise) and optionally a non-zero rejection code if the webhook rejects the request " +
        "with an HTTP status code (honored by the apiserver when the code is greater or equal to " +
        "400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality " +
        "bounded.",
      stability: "ALPHA",
      labels: ["name", "type", "operation", "error_type", "rejection_code"],
    });
    this.failedOpen = registry.counter({
      name: "apiserver_admission_webhook_fail_open_count",
      help:
        "Admission webhook fail open count, identified by name and broken out for each admission " +
        "type (validating or admit).",
      stability: "ALPHA",
      labels: ["name", "type"],
    });
    this.requests = registry.counter({
      name: "apiserver_admission_webhook_request_total",
      help:
        "Admission webhook request total, identified by name and broken out for each admission " +
        "type (validating or admit) and operation. Additional labels specify whether the request " +
        "was rejected or not and an HTTP status code. Codes greater than 600 are truncated to " +
        "600, to keep the metrics cardinality bounded.",
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
      family(
        "evaluation_errors_total",
        "Admission match condition evaluation errors count, identified by name of resource " +
          "containing the match condition and broken out for each kind containing matchConditions " +
          "(webhook or policy), operation and admission type (validate or admit).",
      ),
    );
    this.#exclusions = registry.counter(
      family(
        "exclusions_total",
        "Admission match condition evaluation exclusions count, identified by name of resource " +
          "containing the match condition and broken out for each kind containing matchConditions " +
          "(webhook or policy), operation and admission type (validate or admit).",
      ),
    );
    this.#seconds = registry.histogram(
      family(
        "evaluation_seconds",
        "Admission match condition evaluation time in seconds, identified by name and broken out " +
          "for each kind containing matchConditions (webhook or policy), operation and type " +
          "(validate or admit).",
      ),
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
