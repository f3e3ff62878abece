/** Kubernetes' metrics of conversion webhooks. */
import { exponentialBuckets } from "../../../std/metrics/buckets.ts";
import type { CounterFamily, HistogramFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";

/** Kubernetes' failure types. */
export type ConversionFailure =
  | "conversion_webhook_call_failure"
  | "conversion_webhook_malformed_response_failure"
  | "conversion_webhook_partial_response_failure"
  | "conversion_webhook_invalid_converted_object_failure";

const WEBHOOK_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60];
const DEFINITION_SECONDS = exponentialBuckets(0.001, 2, 15);

/** One call of a webhook. */
export interface ConversionCall {
  readonly definition: string;
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
  /** Undefined after success. */
  readonly failure: ConversionFailure | undefined;
}

export class ConversionMetrics {
  readonly #requests: CounterFamily;
  readonly #seconds: HistogramFamily;
  readonly #ofDefinitions: HistogramFamily;

  constructor(registry: MetricRegistry) {
    const labels = ["failure_type", "result"];
    const stability = "ALPHA" as const;
    this.#requests = registry.counter({
      name: "apiserver_conversion_webhook_request_total",
      help: "Counter for conversion webhook requests with success/failure and failure error type",
      stability,
      labels,
    });
    this.#seconds = registry.histogram(
      {
        name: "apiserver_conversion_webhook_duration_seconds",
        help: "Conversion webhook request latency",
        stability,
        labels,
      },
      WEBHOOK_SECONDS,
    );
    this.#ofDefinitions = registry.histogram(
      {
        name: "apiserver_crd_conversion_webhook_duration_seconds",
        help: "CRD webhook conversion duration in seconds",
        stability,
        labels: ["crd_name", "from_version", "succeeded", "to_version"],
      },
      DEFINITION_SECONDS,
    );
  }

  observe({ definition, from, to, seconds, failure }: ConversionCall): void {
    const values = [failure ?? "", failure === undefined ? "success" : "failure"];
    this.#requests.with(...values).inc();
    this.#seconds.with(...values).observe(seconds);
    this.#ofDefinitions.with(definition, from, String(failure === undefined), to).observe(seconds);
  }
}
