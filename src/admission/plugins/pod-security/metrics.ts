/** How pods were judged: Kubernetes' families. */
import type { MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";
import type { LevelVersion, Mode } from "./level.ts";
import { formatVersion } from "./version.ts";

const REQUEST = ["request_operation", "resource", "subresource"] as const;

export interface PodSecurityMetrics {
  evaluated(request: AdmissionRequest, mode: Mode, policy: LevelVersion, decision: "allow" | "deny"): void;
  exempted(request: AdmissionRequest): void;
  /** The labels of a namespace could not be read. */
  failed(request: AdmissionRequest): void;
}

export function podSecurityMetrics(registry: MetricRegistry): PodSecurityMetrics {
  const stability = "ALPHA";
  const evaluations = registry.counter({
    name: "pod_security_evaluations_total",
    help: "Pods and templates of pods that were judged, but for those that are exempt.",
    stability,
    labels: ["decision", "policy_level", "policy_version", "mode", ...REQUEST],
  });
  const exemptions = registry.counter({
    name: "pod_security_exemptions_total",
    help: "Requests about pods that nobody judged, because somebody is exempt.",
    stability,
    labels: REQUEST,
  });
  const errors = registry.counter({
    name: "pod_security_errors_total",
    help: "Requests for which the policy could not be read.",
    stability,
    labels: ["fatal", ...REQUEST],
  });
  return {
    evaluated: (request, mode, { level, version }, decision) => {
      evaluations.with(decision, level, formatVersion(version), mode, ...requestOf(request)).inc();
    },
    exempted: (request) => exemptions.with(...requestOf(request)).inc(),
    failed: (request) => errors.with("false", ...requestOf(request)).inc(),
  };
}

function requestOf({ operation, kind, subresource }: AdmissionRequest): readonly [string, string, string] {
  return [operation.toLowerCase(), kind.plural === "pods" ? "pod" : "controller", subresource];
}
