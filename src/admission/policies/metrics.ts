/** Kubernetes' metrics of admission policies. */
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import { ConditionMetrics } from "../chain/metrics.ts";

const SECONDS = [0.000_000_5, 0.001, 0.01, 0.1, 1];

export type PolicyErrorType = "no_error" | "compile_error" | "out_of_budget" | "invalid_error";

/** The type of the error with this message. */
export function errorTypeOf(message: string): PolicyErrorType {
  if (message.startsWith("compilation")) return "compile_error";
  if (message.startsWith("validation failed due to running out of cost budget")) return "out_of_budget";
  return "invalid_error";
}

export class PolicyMetrics {
  readonly #checks;
  readonly #seconds;
  readonly conditions: ConditionMetrics;

  /** `labels`: those after the policy and its binding. */
  constructor(registry: MetricRegistry, kind: "validating" | "mutating", labels: readonly string[]) {
    const stability = kind === "validating" ? ("BETA" as const) : ("ALPHA" as const);
    const what = kind === "validating" ? "Validation" : "Mutation";
    const action = kind === "validating" ? " and enforcement action taken" : "";
    const common = { stability, labels: ["policy", "policy_binding", "error_type", ...labels] };
    this.#checks = registry.counter({
      ...common,
      name: `apiserver_${kind}_admission_policy_check_total`,
      help: `${what} admission policy check total, labeled by policy and further identified by binding` + `${action}.`,
    });
    this.#seconds = registry.histogram(
      {
        ...common,
        name: `apiserver_${kind}_admission_policy_check_duration_seconds`,
        help:
          `${what} admission latency for individual ${what.toLowerCase()} expressions in seconds, labeled by policy ` +
          `and further including binding${action}.`,
      },
      SECONDS,
    );
    this.conditions = ConditionMetrics.of(registry);
  }

  observe(milliseconds: number, ...values: readonly string[]): void {
    this.#checks.with(...values).inc();
    this.#seconds.with(...values).observe(milliseconds / 1000);
  }
}
