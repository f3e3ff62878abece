/** `--authorization-mode=Webhook`: somebody else is asked, over HTTPS, with a `SubjectAccessReview`. */
import type { SubjectAccessReviewStatus } from "../../../api/authorization/access-review/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { ExpiringCache } from "../../../std/collections/expiring-cache.ts";
import type { RandomSource } from "../../../std/crypto/random.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Attributes, Authorization, Authorizer } from "../../user.ts";
import { retryWebhook } from "../../webhook/retry.ts";
import { accessRequest } from "./access-review.ts";
import { type AccessRequest, type MatchConditions, matchConditions } from "./match-conditions.ts";

/** Asks once. Rejects with a `StatusError` for an answer that is an error, and otherwise with what went wrong. */
export type AskAccess = (spec: AccessRequest) => Promise<SubjectAccessReviewStatus>;

export interface WebhookOptions {
  readonly name: string;
  readonly ask: AskAccess;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** When the webhook cannot be asked. */
  readonly failurePolicy: "NoOpinion" | "Deny";
  /** Expressions; asked is only what all of them hold for. */
  readonly matchConditions: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly observe?: WebhookObserver | undefined;
}

/** Hears of what is measured. */
export interface WebhookObserver {
  /** The webhook was asked: `success`, `timeout` or `error`; and how long that took. */
  asked?(name: string, result: "success" | "timeout" | "error", milliseconds: number): void;
  /** A failure was taken for no opinion. */
  failedOpen?(name: string, result: "timeout" | "error"): void;
  /** Its match conditions were evaluated. */
  conditionsTook?(name: string, milliseconds: number): void;
  conditionsFailed?(name: string): void;
  excluded?(name: string): void;
}

/** Answers remembered; and the parts of a question that its asker can make long are at most this, to be remembered. */
const ANSWERS_MAX = 8192;
const REMEMBERED_CHARS_MAX = 10_000;

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
  readonly #answers: ExpiringCache<SubjectAccessReviewStatus>;
  /** Questions under way: who asks the same waits for the same answer. At most as many as requests are in flight. */
  readonly #asking = new Map<string, Promise<SubjectAccessReviewStatus>>();
  readonly #conditions: MatchConditions | undefined;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#answers = new ExpiringCache(ANSWERS_MAX, options.clock);
    const { matchConditions: conditions } = options;
    this.#conditions = conditions.length === 0 ? undefined : matchConditions(conditions);
  }

  async authorize(attributes: Attributes): Promise<Authorization> {
    const { name, observe } = this.#options;
    const spec = accessRequest(attributes) as AccessRequest;
    const { matches, error } = this.#match(spec);
    if (error !== undefined) {
      observe?.conditionsFailed?.(name);
      return this.#failed(error);
    }
    if (!matches) {
      observe?.excluded?.(name);
      return { decision: "no-opinion", reason: "" };
    }
    try {
      return decisionOf(await this.#answer(spec, isShort(attributes)));
    } catch (cause) {
      const result = isTimeout(cause) ? "timeout" : "error";
      if (this.#options.failurePolicy === "NoOpinion") observe?.failedOpen?.(name, result);
      this.#options.log.error("Cannot ask a webhook whether a request is allowed", cause, { webhook: name });
      return this.#failed(cause instanceof Error ? cause.message : String(cause));
    }
  }

  #match(spec: AccessRequest): ReturnType<MatchConditions["match"]> {
    if (this.#conditions === undefined) return { matches: true };
    const { name, clock, observe } = this.#options;
    const began = clock.monotonic();
    const result = this.#conditions.match(spec);
    observe?.conditionsTook?.(name, clock.monotonic() - began);
    return result;
  }

  #failed(error: string): Authorization {
    const decision = this.#options.failurePolicy === "Deny" ? "deny" : "no-opinion";
    return { decision, reason: "", error };
  }

  async #answer(spec: AccessRequest, remember: boolean): Promise<SubjectAccessReviewStatus> {
    const key = JSON.stringify(spec);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    let asking = this.#asking.get(key);
    if (asking === undefined) {
      asking = this.#ask(spec).finally(() => this.#asking.delete(key));
      this.#asking.set(key, asking);
    }
    const status = await asking;
    const { authorizedTtlMs, unauthorizedTtlMs } = this.#options;
    if (remember) this.#answers.set(key, status, status.allowed ? authorizedTtlMs : unauthorizedTtlMs);
    return status;
  }

  #ask(spec: AccessRequest): Promise<SubjectAccessReviewStatus> {
    const { clock, random, ask } = this.#options;
    const askOnce = async (): Promise<SubjectAccessReviewStatus> => {
      const began = clock.monotonic();
      try {
        const status = await ask(spec);
        this.#asked("success", began);
        return status;
      } catch (error) {
        this.#asked(isTimeout(error) ? "timeout" : "error", began);
        throw error;
      }
    };
    return retryWebhook(askOnce, { clock, random, isRetryable: isPassing });
  }

  #asked(result: "success" | "timeout" | "error", began: number): void {
    const { name, clock, observe } = this.#options;
    observe?.asked?.(name, result, clock.monotonic() - began);
  }
}

function decisionOf({ allowed, denied = false, reason = "" }: SubjectAccessReviewStatus): Authorization {
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
  return texts.reduce((sum, text) => sum + text.length, 0) < REMEMBERED_CHARS_MAX;
}

const RESET: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_GOAWAY_SESSION",
]);

/** Whether asking again may help. */
function isPassing(error: unknown): boolean {
  if (error instanceof StatusError) {
    const { code, details } = error.status;
    return code === 429 || code === 500 || code === 504 || details?.retryAfterSeconds !== undefined;
  }
  return RESET.has((error as NodeJS.ErrnoException).code ?? "");
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}
