/** What is measured of authorizers that are asked elsewhere, and of the file that names them. */
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
  const asked = family("webhook_evaluations_total", "Questions to webhooks, by how they ended.", ["name", "result"]);
  const evaluations = registry.counter(asked);
  const took = family("webhook_duration_seconds", "How long webhooks took to answer, in seconds.", ["name", "result"]);
  const seconds = registry.histogram(took, SECONDS);
  const opened = ["name", "result"];
  const failOpen = registry.counter(
    family("webhook_evaluations_fail_open_total", "Failures of webhooks taken for no opinion.", opened),
  );
  const about = ["type", "name"];
  const conditions = registry.counter(
    family("match_condition_evaluation_errors_total", "Requests whose match conditions failed.", about),
  );
  const exclusions = registry.counter(
    family("match_condition_exclusions_total", "Requests that match conditions kept from a webhook.", about),
  );
  const conditionSeconds = registry.histogram(
    family("match_condition_evaluation_seconds", "How long match conditions took to evaluate, in seconds.", about),
    CONDITION_SECONDS,
  );
  const server = serverIdHash();
  const status = ["apiserver_id_hash", "status"];
  const reloads = registry.counter(
    family("config_controller_automatic_reloads_total", "Changes of the file of authorizers, by their end.", status),
  );
  const last = registry.gauge(
    family(
      "config_controller_automatic_reload_last_timestamp_seconds",
      "When the file of authorizers changed last, by how that ended.",
      status,
    ),
  );
  return {
    asked(name, result, milliseconds) {
      evaluations.with(name, result).inc();
      seconds.with(name, result).observe(milliseconds / 1000);
    },
    failedOpen: (name, result) => failOpen.with(name, result).inc(),
    conditionsTook: (name, milliseconds) => conditionSeconds.with("Webhook", name).observe(milliseconds / 1000),
    conditionsFailed: (name) => conditions.with("Webhook", name).inc(),
    excluded: (name) => exclusions.with("Webhook", name).inc(),
    reloaded(succeeded) {
      const outcome = succeeded ? "success" : "failure";
      reloads.with(server, outcome).inc();
      last.with(server, outcome).set(clock.now() / 1000);
    },
  };
}
