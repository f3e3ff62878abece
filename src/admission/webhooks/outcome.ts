/** What becomes of a request whose webhook refused it or could not be asked; and what of it is counted. */
import { StatusError } from "../../api/status.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { WebhookMetrics } from "../chain/metrics.ts";
import type { AdmissionRequest } from "../chain/plugin.ts";
import { CallFailed } from "./call.ts";
import type { Hook } from "./hook.ts";

export type WebhookType = "admit" | "validating";

export interface OutcomeDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: WebhookMetrics;
  /** Hears of a webhook that keeps requests from going on because it cannot be asked. */
  readonly failedClosed: (hook: Hook, request: AdmissionRequest, error: CallFailed) => void;
}

/** Codes beyond these are no codes. */
const CODE_MAX = 600;

/**
 * Runs one question. Resolves with undefined where the webhook could not be asked and is to be ignored: `failedOpen`
 * hears of that. Throws what the client is told.
 */
export async function outcomeOf<T>(
  deps: OutcomeDeps,
  type: WebhookType,
  hook: Hook,
  request: AdmissionRequest,
  work: () => Promise<T>,
  failedOpen: () => void,
): Promise<T | undefined> {
  const { clock, metrics, log } = deps;
  const { name } = hook.webhook;
  const { operation } = request;
  const began = clock.monotonic();
  const note = (rejected: boolean, code: number): void => {
    const labels = [name, type, operation] as const;
    metrics.duration.with(...labels, String(rejected)).observe((clock.monotonic() - began) / 1000);
    metrics.requests.with(...labels, String(Math.min(code, CODE_MAX)), String(rejected)).inc();
  };
  const refused = (errorType: string, code: number): void => {
    metrics.rejections.with(name, type, operation, errorType, String(Math.min(code, CODE_MAX))).inc();
  };
  try {
    const result = await work();
    note(false, 200);
    return result;
  } catch (error) {
    if (!(error instanceof CallFailed)) {
      const internal = isInternal(error);
      refused(internal ? "apiserver_internal_error" : "no_error", internal ? 0 : codeOf(error));
      note(true, internal ? 0 : codeOf(error));
      throw error;
    }
    note(!hook.failsOpen, error.code);
    if (!hook.failsOpen) {
      refused("calling_webhook_error", error.code);
      log.warn("Failed calling a webhook, refusing the request", { webhook: name, reason: error.message });
      deps.failedClosed(hook, request, error);
      throw internalError(error.message, error);
    }
    log.warn("Failed calling a webhook, going on without it", { webhook: name, reason: error.message });
    metrics.failedOpen.with(name, type).inc();
    failedOpen();
    if (request.signal.aborted) throw timedOut();
    return undefined;
  }
}

/** A mistake on our side of the question. */
class Internal extends StatusError {}

function isInternal(error: unknown): boolean {
  return error instanceof Internal || !(error instanceof StatusError);
}

function codeOf(error: unknown): number {
  return error instanceof StatusError ? error.status.code : 0;
}

export function internalError(message: string, cause?: unknown): StatusError {
  const details = { causes: [{ message }] };
  return new Internal(500, "InternalError", `Internal error occurred: ${message}`, { details, cause });
}

function timedOut(): StatusError {
  const message = "Timeout: request did not complete within requested timeout";
  return new StatusError(504, "Timeout", message, { details: {} });
}
