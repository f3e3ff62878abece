/** How long plugins take, and how often they refuse: Kubernetes' families. */
import type { Clock } from "../../std/time/clock.ts";
import type { Histogram, HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Operation } from "./plugin.ts";

/** Where it is noted how long something took, in milliseconds, and whether it refused. */
export interface Note {
  passed(milliseconds: number): void;
  refused(milliseconds: number): void;
}

export const unnoted: Note = { passed() {}, refused() {} };

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
        help: "How long all admission plugins together took, in seconds, by whether they refused.",
        stability,
        labels: ["type", "operation", "rejected"],
      },
      SECONDS,
    );
    this.#plugins = registry.histogram(
      {
        name: "apiserver_admission_controller_admission_duration_seconds",
        help: "How long each admission plugin took, in seconds, by whether it refused.",
        stability,
        labels: ["name", "type", "operation", "rejected"],
      },
      SECONDS,
    );
  }

  /** By which all that is noted here is measured. */
  get clock(): Clock {
    return this.#clock;
  }

  /** All that have a say: in changing objects, or in checking them. */
  step(type: StepType, operation: Operation): Note {
    return noteIn((rejected) => this.#steps.with(type, operation, rejected));
  }

  plugin(name: string, type: StepType, operation: Operation): Note {
    return noteIn((rejected) => this.#plugins.with(name, type, operation, rejected));
  }
}

/** Series are looked up anew only where something was refused, which is rare. */
function noteIn(seriesOf: (rejected: "true" | "false") => Histogram): Note {
  const passed = seriesOf("false");
  return {
    passed: (milliseconds) => passed.observe(milliseconds / 1000),
    refused: (milliseconds) => seriesOf("true").observe(milliseconds / 1000),
  };
}

/** Calls of webhooks. `type` is `admit` for those that change objects, `validating` for those that check them. */
export class WebhookMetrics {
  static readonly #known = new WeakMap<MetricRegistry, WebhookMetrics>();

  /** Those of the registry: both plugins that call webhooks count together. */
  static in(registry: MetricRegistry): WebhookMetrics {
    let known = WebhookMetrics.#known.get(registry);
    if (known === undefined) {
      known = new WebhookMetrics(registry);
      WebhookMetrics.#known.set(registry, known);
    }
    return known;
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
        help: "How long each admission webhook took, in seconds, by whether it refused.",
        stability: "STABLE",
        labels: ["name", "type", "operation", "rejected"],
      },
      WEBHOOK_SECONDS,
    );
    this.rejections = registry.counter({
      name: "apiserver_admission_webhook_rejection_count",
      help: "Refusals by each admission webhook, by what went wrong and the code that the client was told.",
      stability: "ALPHA",
      labels: ["name", "type", "operation", "error_type", "rejection_code"],
    });
    this.failedOpen = registry.counter({
      name: "apiserver_admission_webhook_fail_open_count",
      help: "Requests that were let through because an admission webhook could not be asked.",
      stability: "ALPHA",
      labels: ["name", "type"],
    });
    this.requests = registry.counter({
      name: "apiserver_admission_webhook_request_total",
      help: "Requests to each admission webhook, by the code of its answer.",
      stability: "ALPHA",
      labels: ["name", "type", "operation", "code", "rejected"],
    });
    this.conditions = new ConditionMetrics(registry);
  }
}

/** Expressions that say which requests a webhook is asked about. */
export class ConditionMetrics {
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
    this.#errors = registry.counter(family("evaluation_errors_total", "Requests whose match conditions failed."));
    this.#exclusions = registry.counter(
      family("exclusions_total", "Requests that match conditions kept from whom they belong to."),
    );
    this.#seconds = registry.histogram(
      family("evaluation_seconds", "How long match conditions took to evaluate, in seconds."),
      CONDITION_SECONDS,
    );
  }

  /** `type` is `admit` for webhooks that change objects, `validating` for those that check them. */
  evaluated(
    { name, type, operation }: Readonly<Record<"name" | "type" | "operation", string>>,
    result: "matched" | "excluded" | "failed",
    milliseconds: number,
  ): void {
    const values = [name, "webhook", type, operation];
    this.#seconds.with(...values).observe(milliseconds / 1000);
    if (result === "failed") this.#errors.with(...values).inc();
    if (result === "excluded") this.#exclusions.with(...values).inc();
  }
}
