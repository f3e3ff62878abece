/** `--authorization-mode=Webhook`: an external service authorizes requests through `SubjectAccessReview`. */
import type { SubjectAccessReviewStatus } from "../../../api/authorization/access-review/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Attributes, Authorization, Authorizer } from "../../user.ts";
import { retryWebhook } from "../../webhook/retry.ts";
import { toAccessReviewSpec } from "./access-review.ts";
import { type AccessRequest, type MatchConditions, matchConditions } from "./match-conditions.ts";

/** Sends one review. Rejects with a `StatusError` for an error response, and otherwise with the network error. */
export type ReviewAccess = (spec: AccessRequest) => Promise<SubjectAccessReviewStatus>;

export interface WebhookOptions {
  readonly name: string;
  readonly review: ReviewAccess;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** The decision if the call fails. */
  readonly failurePolicy: "NoOpinion" | "Deny";
  /** CEL expressions; the webhook is called only if all are true. */
  readonly matchConditions: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly observe?: WebhookObserver | undefined;
}

/** Metrics of the webhook. */
export interface WebhookObserver {
  /** A call ended, with its result and duration. */
  called?(name: string, result: "success" | "timeout" | "error", milliseconds: number): void;
  /** A failed call resulted in no opinion. */
  failedOpen?(name: string, result: "timeout" | "error"): void;
  /** The match conditions were evaluated. */
  conditionsEvaluated?(name: string, milliseconds: number): void;
  conditionsFailed?(name: string): void;
  excluded?(name: string): void;
}

/** Bounds the cached responses, and the client-controlled part of the requests that are cached. */
const RESPONSES_MAX = 8192;
const CACHED_CHARS_MAX = 10_000;

export function webhookAuthorizer(options: WebhookOptions): Authorizer {
  const webhook = new Webhook(options);
  return {
    authorize: (attributes) => webhook.authorize(attributes),
    rulesFor: () => ({
      rules: [],
      incomplete: true,
      error: "webhook authorizer does not support user rule resolution",
    }),
  };
}

class Webhook {
  readonly #options: WebhookOptions;
  readonly #responses: ExpiringCache<SubjectAccessReviewStatus>;
  /** Concurrent requests with the same attributes share one call. Bounded by the number of requests in flight. */
  readonly #inFlight = new Map<string, Promise<SubjectAccessReviewStatus>>();
  readonly #conditions: MatchConditions | undefined;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#responses = new ExpiringCache(RESPONSES_MAX, options.clock);
    const { matchConditions: conditions } = options;
    this.#conditions = conditions.length === 0 ? undefined : matchConditions(conditions);
  }

  async authorize(attributes: Attributes): Promise<Authorization> {
    const { name, observe, log } = this.#options;
    const spec = toAccessReviewSpec(attributes) as AccessRequest;
    const { matches, error } = this.#match(spec);
    if (error !== undefined) {
      observe?.conditionsFailed?.(name);
      // The error contains the expression, which is for operators only: the client gets the decision without it.
      log.error("Failed to evaluate match conditions of the authorization webhook", error, { webhook: name });
      return { decision: this.#failureDecision, reason: "" };
    }
    if (!matches) {
      observe?.excluded?.(name);
      return { decision: "no-opinion", reason: "" };
    }
    try {
      return toAuthorization(await this.#review(spec, isShort(attributes)));
    } catch (cause) {
      const result = isTimeout(cause) ? "timeout" : "error";
      if (this.#options.failurePolicy === "NoOpinion") observe?.failedOpen?.(name, result);
      log.error("Failed to call the authorization webhook", cause, { webhook: name });
      const error = cause instanceof Error ? cause.message : String(cause);
      return { decision: this.#failureDecision, reason: "", error };
    }
  }

  #match(spec: AccessRequest): ReturnType<MatchConditions["match"]> {
    if (this.#conditions === undefined) return { matches: true };
    const { name, clock, observe } = this.#options;
    const began = clock.monotonic();
    const result = this.#conditions.match(spec);
    observe?.conditionsEvaluated?.(name, clock.monotonic() - began);
    return result;
  }

  get #failureDecision(): Authorization["decision"] {
    return this.#options.failurePolicy === "Deny" ? "deny" : "no-opinion";
  }

  async #review(spec: AccessRequest, isCacheable: boolean): Promise<SubjectAccessReviewStatus> {
    const key = JSON.stringify(spec);
    const cached = this.#responses.get(key);
    if (cached !== undefined) return cached;
    let pending = this.#inFlight.get(key);
    if (pending === undefined) {
      pending = this.#call(spec).finally(() => this.#inFlight.delete(key));
      this.#inFlight.set(key, pending);
    }
    const status = await pending;
    const { authorizedTtlMs, unauthorizedTtlMs } = this.#options;
    if (isCacheable) this.#responses.set(key, status, status.allowed ? authorizedTtlMs : unauthorizedTtlMs);
    return status;
  }

  #call(spec: AccessRequest): Promise<SubjectAccessReviewStatus> {
    const { clock, random, review: send } = this.#options;
    const callOnce = async (): Promise<SubjectAccessReviewStatus> => {
      const began = clock.monotonic();
      try {
        const status = await send(spec);
        this.#observeCall("success", began);
        return status;
      } catch (error) {
        this.#observeCall(isTimeout(error) ? "timeout" : "error", began);
        throw error;
      }
    };
    return retryWebhook(callOnce, { clock, random, isRetryable: isRetryable });
  }

  #observeCall(result: "success" | "timeout" | "error", began: number): void {
    const { name, clock, observe } = this.#options;
    observe?.called?.(name, result, clock.monotonic() - began);
  }
}

function toAuthorization({ allowed, denied = false, reason = "" }: SubjectAccessReviewStatus): Authorization {
  if (denied && allowed) {
    const error = "webhook subject access review returned both allow and deny response";
    return { decision: "deny", reason, error };
  }
  if (denied) return { decision: "deny", reason };
  return { decision: allowed ? "allow" : "no-opinion", reason };
}

function isShort({ namespace, apiGroup, apiVersion, resource, subresource, name, path, ...more }: Attributes): boolean {
  const parts = [namespace, apiGroup, apiVersion, resource, subresource, name, path];
  const texts = [...parts, more.fieldSelector ?? "", more.labelSelector ?? ""];
  return texts.reduce((sum, text) => sum + text.length, 0) < CACHED_CHARS_MAX;
}

const RETRYABLE_CODES: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_GOAWAY_SESSION",
]);

/** Whether a retry may succeed. */
function isRetryable(error: unknown): boolean {
  if (error instanceof StatusError) {
    const { code, details } = error.status;
    return code === 429 || code === 500 || code === 504 || details?.retryAfterSeconds !== undefined;
  }
  return RETRYABLE_CODES.has((error as NodeJS.ErrnoException).code ?? "");
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}
