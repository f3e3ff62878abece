/** Decides by the policy what is recorded, and passes events to the backends of the configuration. */
import type { Connector } from "../client/transport/connector.ts";
import type { MaybePromise } from "../std/async/maybe-promise.ts";
import type { RandomSource } from "../std/crypto/random.ts";
import type { MetricRegistry } from "../std/metrics/metrics.ts";
import { AuditMetrics } from "./audit-metrics.ts";
import { type AuditBackend, type BackendDeps, type BackendOptions, createBackend } from "./backend.ts";
import type { AuditEvent } from "./event.ts";
import { type LogSinkDeps, type LogSinkOptions, openLogSink } from "./log-sink.ts";
import { type AuditAttributes, type AuditDecision, createPolicyEvaluator } from "./policy.ts";
import { readAuditPolicy } from "./policy-file.ts";
import { openWebhookSink, type WebhookSinkOptions } from "./webhook-sink.ts";

export interface AuditConfig {
  /** `--audit-policy-file` */
  readonly policyFile: string;
  readonly log: (LogSinkOptions & BackendOptions) | undefined;
  readonly webhook: (WebhookSinkOptions & BackendOptions) | undefined;
}

export interface Auditor extends AsyncDisposable {
  /** The decision of the policy, which is counted. */
  decide(attributes: AuditAttributes): AuditDecision;
  /** False: a backend in mode `blocking-strict` failed. */
  process(event: AuditEvent): MaybePromise<boolean>;
  /** Counts a request that was refused because its event could not be written. */
  countRejected(): void;
}

export interface AuditorDeps extends Omit<BackendDeps, "metrics">, Pick<LogSinkDeps, "threads"> {
  readonly metrics: MetricRegistry;
  readonly random: RandomSource;
  /** How to connect to the webhook; undefined: directly. */
  readonly connector?: Connector | undefined;
}

/** Rejects with one sentence for an invalid policy, an unusable log file, or an invalid kubeconfig file. */
export async function openAuditor({ policyFile, log, webhook }: AuditConfig, deps: AuditorDeps): Promise<Auditor> {
  const { policy, warnings } = readAuditPolicy(policyFile);
  for (const warning of warnings) deps.log.warn("Ignored a field of the audit policy", { warning });
  const evaluate = createPolicyEvaluator(policy);
  const metrics = new AuditMetrics(deps.metrics);
  const backendDeps = { clock: deps.clock, log: deps.log, metrics };
  await using stack = new AsyncDisposableStack();
  const backends: AuditBackend[] = [];
  if (log !== undefined) backends.push(stack.use(createBackend(await openLogSink(log, deps), log, backendDeps)));
  if (webhook !== undefined) {
    backends.push(stack.use(createBackend(await openWebhookSink(webhook, deps), webhook, backendDeps)));
  }
  const parts = stack.move();
  return {
    decide(attributes) {
      const decision = evaluate(attributes);
      metrics.countLevel(decision.level);
      return decision;
    },
    process(event) {
      metrics.countEvent();
      const [only] = backends;
      if (only !== undefined && backends.length === 1) return only.process(event);
      const results = backends.map((backend) => backend.process(event));
      if (results.every((result) => result === true)) return true;
      return Promise.all(results.map(async (result) => await result)).then((all) => !all.includes(false));
    },
    countRejected: () => metrics.countRejected(),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}
