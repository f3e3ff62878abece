/** Applies the failure policy of a webhook and records the metrics of the call. */
import { StatusError } from "../../api/status.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { addLatency } from "../../tracing/span.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { WebhookMetrics } from "../chain/metrics.ts";
import { WebhookCallError } from "./call-webhook.ts";
import type { ConfiguredWebhook } from "./webhook-source.ts";

export type WebhookType = "admit" | "validating";

export interface OutcomeDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: WebhookMetrics;
  /** Called when a failed call rejects the request, because the failure policy is Fail. */
  readonly failedClosed: (webhook: ConfiguredWebhook, request: AdmissionRequest, error: WebhookCallError) => void;
}

/** Codes above are not HTTP status codes. */
const CODE_MAX = 600;

/**
 * Runs one call. Returns undefined if the call failed and the failure policy is Ignore, after calling `failedOpen`.
 * Throws the error for the client.
 */
export async function callWithFailurePolicy<T>(
  deps: OutcomeDeps,
  type: WebhookType,
  webhook: ConfiguredWebhook,
  request: AdmissionRequest,
  call: () => Promise<T>,
  failedOpen: () => void,
): Promise<T | undefined> {
  const { clock, metrics, log } = deps;
  const { name } = webhook.definition;
  const { operation } = request;
  const start = clock.monotonic();
  const observe = (rejected: boolean, code: number): void => {
    const labels = [name, type, operation] as const;
    const milliseconds = clock.monotonic() - start;
    metrics.duration.with(...labels, String(rejected)).observe(milliseconds / 1000);
    addLatency(type === "admit" ? "mutatingWebhooks" : "validatingWebhooks", milliseconds);
    metrics.requests.with(...labels, String(Math.min(code, CODE_MAX)), String(rejected)).inc();
  };
  const countRejection = (errorType: string, code: number): void => {
    metrics.rejections.with(name, type, operation, errorType, String(Math.min(code, CODE_MAX))).inc();
  };
  try {
    const result = await call();
    observe(false, 200);
    return result;
  } catch (error) {
    if (!(error instanceof WebhookCallError)) {
      const internal = isInternal(error);
      countRejection(internal ? "apiserver_internal_error" : "no_error", internal ? 0 : codeOf(error));
      observe(true, internal ? 0 : codeOf(error));
      throw error;
    }
    observe(!webhook.failsOpen, error.code);
    if (!webhook.failsOpen) {
      countRejection("calling_webhook_error", error.code);
      log.warn("Failed calling webhook, failing closed", { webhook: name, reason: error.message });
      deps.failedClosed(webhook, request, error);
      throw internalError(error.message, error);
    }
    log.warn("Failed calling webhook, failing open", { webhook: name, reason: error.message });
    metrics.failedOpen.with(name, type).inc();
    failedOpen();
    if (request.signal.aborted) throw newTimeout();
    return undefined;
  }
}

/** A failure of the API server, not of the webhook. */
class InternalWebhookError extends StatusError {}

function isInternal(error: unknown): boolean {
  return error instanceof InternalWebhookError || !(error instanceof StatusError);
}

function codeOf(error: unknown): number {
  return error instanceof StatusError ? error.status.code : 0;
}

export function internalError(message: string, cause?: unknown): StatusError {
  const details = { causes: [{ message }] };
  return new InternalWebhookError(500, "InternalError", `Internal error occurred: ${message}`, { details, cause });
}

function newTimeout(): StatusError {
  const message = "Timeout: request did not complete within requested timeout";
  return new StatusError(504, "Timeout", message, { details: {} });
}
