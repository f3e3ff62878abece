/** Metrics of webhook authorizers and of reloads of the authorization configuration. */
import type { WebhookObserver } from "../../auth/authz/webhook/webhook.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ReloadObserver } from "../authorization/authorizers.ts";
import { serverIdHash } from "./server-id.ts";

const CONDITION_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createAuthorizerObserver(
  registry: MetricRegistry,
  clock: Clock,
): Required<WebhookObserver & ReloadObserver> {
  const family = (name: string, help: string, labels: readonly string[]) => ({
    name: `apiserver_authorization_${name}`,
    help,
    stability: "ALPHA" as const,
    labels,
  });
  const evaluationFamily = family("webhook_evaluations_total", "Round-trips to authorization webhooks.", [
    "name",
    "result",
  ]);
  const evaluations = registry.counter(evaluationFamily);
  const took = family("webhook_duration_seconds", "Request latency in seconds.", ["name", "result"]);
  const seconds = registry.histogram(took, SECONDS);
  const opened = ["name", "result"];
  const failOpen = registry.counter(
    family("webhook_evaluations_fail_open_total", "NoOpinion results due to webhook timeout or error.", opened),
  );
  const labels = ["type", "name"];
  const conditions = registry.counter(
    family(
      "match_condition_evaluation_errors_total",
      "Total number of errors when an authorization webhook encounters a match condition error " +
        "split by authorizer type and name.",
      labels,
    ),
  );
  const exclusions = registry.counter(
    family(
      "match_condition_exclusions_total",
      "Total number of exclusions when an authorization webhook is skipped because match " + "conditions exclude it.",
      labels,
    ),
  );
  const conditionSeconds = registry.histogram(
    family(
      "match_condition_evaluation_seconds",
      "Authorization match condition evaluation time in seconds, split by authorizer type and " + "name.",
      labels,
    ),
    CONDITION_SECONDS,
  );
  const server = serverIdHash();
  const status = ["apiserver_id_hash", "status"];
  const reloads = registry.counter(
    family(
      "config_controller_automatic_reloads_total",
      "Total number of automatic reloads of authorization configuration split by status and " + "apiserver identity.",
      status,
    ),
  );
  const last = registry.gauge(
    family(
      "config_controller_automatic_reload_last_timestamp_seconds",
      "Timestamp of the last automatic reload of authorization configuration split by status " +
        "and apiserver identity.",
      status,
    ),
  );
  return {
    called(name, result, milliseconds) {
      evaluations.with(name, result).inc();
      seconds.with(name, result).observe(milliseconds / 1000);
    },
    failedOpen: (name, result) => failOpen.with(name, result).inc(),
    conditionsEvaluated: (name, milliseconds) => conditionSeconds.with("Webhook", name).observe(milliseconds / 1000),
    conditionsFailed: (name) => conditions.with("Webhook", name).inc(),
    excluded: (name) => exclusions.with("Webhook", name).inc(),
    reloaded(succeeded) {
      const outcome = succeeded ? "success" : "failure";
      reloads.with(server, outcome).inc();
      last.with(server, outcome).set(clock.now() / 1000);
    },
  };
}
