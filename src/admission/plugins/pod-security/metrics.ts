/** Kubernetes' metrics of pod security evaluations. */
import type { MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { AdmissionRequest } from "../../chain/attributes.ts";
import type { LevelVersion, Mode } from "./level.ts";
import { formatVersion } from "./version.ts";

const REQUEST = ["request_operation", "resource", "subresource"] as const;

export interface PodSecurityMetrics {
  recordEvaluation(request: AdmissionRequest, mode: Mode, policy: LevelVersion, decision: "allow" | "deny"): void;
  recordExemption(request: AdmissionRequest): void;
  /** The labels of the namespace are invalid. */
  recordError(request: AdmissionRequest): void;
}

export function createPodSecurityMetrics(registry: MetricRegistry): PodSecurityMetrics {
  const stability = "ALPHA";
  const evaluations = registry.counter({
    name: "pod_security_evaluations_total",
    help: "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
    stability,
    labels: ["decision", "policy_level", "policy_version", "mode", ...REQUEST],
  });
  const exemptions = registry.counter({
    name: "pod_security_exemptions_total",
    help: "Number of exempt requests, not counting ignored or out of scope requests.",
    stability,
    labels: REQUEST,
  });
  const errors = registry.counter({
    name: "pod_security_errors_total",
    help:
      "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest " +
      "restricted profile being used for evaluation.",
    stability,
    labels: ["fatal", ...REQUEST],
  });
  return {
    recordEvaluation: (request, mode, { level, version }, decision) => {
      evaluations.with(decision, level, formatVersion(version), mode, ...requestLabels(request)).inc();
    },
    recordExemption: (request) => exemptions.with(...requestLabels(request)).inc(),
    recordError: (request) => errors.with("false", ...requestLabels(request)).inc(),
  };
}

function requestLabels({ operation, kind, subresource }: AdmissionRequest): readonly [string, string, string] {
  return [operation.toLowerCase(), kind.plural === "pods" ? "pod" : "controller", subresource];
}
