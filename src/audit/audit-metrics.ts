/** Metrics of auditing, with the names of Kubernetes. */
import type { Counter, CounterFamily, MetricRegistry } from "../std/metrics/metrics.ts";
import type { Level } from "./policy.ts";

export class AuditMetrics {
  readonly #events: Counter;
  readonly #levels: CounterFamily;
  readonly #errors: CounterFamily;
  readonly #rejected: Counter;

  constructor(registry: MetricRegistry) {
    this.#events = registry
      .counter({
        name: "apiserver_audit_event_total",
        help: "Counter of audit events generated and sent to the audit backend.",
      })
      .with();
    this.#levels = registry.counter({
      name: "apiserver_audit_level_total",
      help: "Counter of policy levels for audit events (1 per request).",
      labels: ["level"],
    });
    this.#errors = registry.counter({
      name: "apiserver_audit_error_total",
      help: "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.",
      labels: ["plugin"],
    });
    this.#rejected = registry
      .counter({
        name: "apiserver_audit_requests_rejected_total",
        help: "Counter of apiserver requests rejected due to an error in audit logging backend.",
      })
      .with();
  }

  countEvent(): void {
    this.#events.inc();
  }

  countLevel(level: Level): void {
    this.#levels.with(level).inc();
  }

  countErrors(plugin: string, events: number): void {
    this.#errors.with(plugin).inc(events);
  }

  countRejected(): void {
    this.#rejected.inc();
  }
}
